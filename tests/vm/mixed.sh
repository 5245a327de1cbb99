#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Unmodified programs, each end with AF_SOVIA or without: they reach each other in all four combinations, and what
# carries the bytes is AF_SOVIA only where both have it.
#
# vm: --pair --timeout 600 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

SIZE=$((2 << 20))
PORT=6000

# On the other node, with sovia-run or without.
serve() { # COMMAND...
	there "cd $WORK && { setsid ${server[*]} $* >$WORK/server.log 2>&1 </dev/null & echo \$! >$WORK/server.pid; }
		eventually listens $PORT || { cat $WORK/server.log; exit 1; }"
}
stop_serving() { there "kill \$(cat $WORK/server.pid)"; }
listens() { [ -n "$(ss -Hltn "sport = :$1")" ]; }
client() { "${client[@]}" "$@"; }

verbs_bytes() { awk '/^verbs_[tr]x_bytes/ { sum += $2 } END { print sum }' /proc/net/sovia/stat; }

# COMMAND succeeds, and AF_SOVIA has carried SIZE bytes or nearly none.
carries() { # COMMAND...
	local before after
	before=$(verbs_bytes)
	"$@" || return
	after=$(verbs_bytes)
	echo "$((after - before)) bytes over verbs"
	if [ "${client[*]} ${server[*]}" = 'sovia-run sovia-run' ]; then
		[ $((after - before)) -ge $SIZE ]
	else
		[ $((after - before)) -lt 65536 ]
	fi
}

same() { equal "$(sha256sum <"$1")" "$(there "sha256sum <$2")"; }
make_data() { python3 -c "import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes($SIZE))" >$WORK/data; }
data_on_both() { make_data && there "SIZE=$SIZE; $(declare -f make_data); make_data" && same $WORK/data $WORK/data; }

http() {
	serve "python3 -m http.server -d $WORK --bind $any $PORT" && client curl -sS -o $WORK/copy "http://$host:$PORT/data" &&
		stop_serving && same $WORK/copy $WORK/data
}
netcat() {
	serve "nc -$v -l -p $PORT" && client nc "-$v" -q 1 "$SOVIA_PEER" $PORT <$WORK/data &&
		eventually same $WORK/data $WORK/server.log
}
throughput() { # [-R]
	serve "iperf3 -s -1 -p $PORT" && client iperf3 -c "$SOVIA_PEER" "-$v" -p $PORT -n $((8 * SIZE)) "$@" &&
		there "eventually eval '! pgrep -x iperf3'"
}
echoes() {
	serve "socat TCP$v-LISTEN:$PORT,reuseaddr EXEC:cat" &&
		client socat -t 10 - "TCP$v:$SOVIA_PEER:$PORT" <$WORK/data >$WORK/copy && same $WORK/copy $WORK/data
}
tls() {
	serve "openssl s_server -quiet -port $PORT -$v -WWW -cert cert -key key" &&
		client curl -sSk -o $WORK/copy "https://$host:$PORT/data" && stop_serving && same $WORK/copy $WORK/data
}
certificate() {
	there "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=lab -days 2 -keyout $WORK/key -out $WORK/cert"
}

check 'a file' data_on_both
check 'a certificate' certificate
for v in 4 6; do
	host=$(address $v "$SOVIA_PEER") any=0.0.0.0
	[ $v = 4 ] || host="[$host]" any=::
	for pair in sovia-run:sovia-run sovia-run: :sovia-run :; do
		read -r -a client <<<"${pair%:*}"
		read -r -a server <<<"${pair#*:}"
		[ "${client[*]}" ] || client=(env)
		[ "${server[*]}" ] || server=(env)
		what="${client[*]} to ${server[*]}, IPv$v"
		check "$what: curl and http.server"	carries http
		check "$what: netcat"			carries netcat
		check "$what: iperf3"			carries throughput
		check "$what: iperf3, backwards"	carries throughput -R
		check "$what: socat"			carries echoes
		check "$what: openssl"			carries tls
	done
done
finish
