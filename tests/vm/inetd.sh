#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# inetd as Debian ships it, under the shim: it listens, accepts, forks and
# executes programs that only use standard input and output.
#
# vm: --pair --timeout 300
# lab: installs files in /usr and /etc of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
ROOT=$(realpath ../..)
WORK=$(mktemp -d)

# Services by port: the program's standard streams are the connection.
configuration() {
	local port=7000 service
	for service in 'nowait root /bin/cat cat' \
		'nowait nobody /usr/bin/id id -un' \
		'nowait root /usr/bin/wc wc -c' \
		'nowait root /usr/bin/sha256sum sha256sum' \
		'wait root /tmp/inetd-wait inetd-wait'; do
		echo "$port stream tcp $service"
		echo "$port stream tcp6 $service"
		port=$((port + 1))
	done
}

# A "wait" service gets the listening socket.
wait_service() {
	cat <<'END'
#!/usr/bin/python3 -I
import socket
listener = socket.socket(fileno=0)
listener.settimeout(30)
connection, _ = listener.accept()
connection.sendall(b"accepted by the service\n")
END
}

start_inetd() {
	configuration >"$WORK/conf"
	wait_service >"$WORK/wait"
	on-peer "cp -a $ROOT/.build/servers/usr $ROOT/.build/servers/etc / && printf '%s' '$(base64 -w0 "$WORK/conf")' | base64 -d >/tmp/inetd.conf &&
		printf '%s' '$(base64 -w0 "$WORK/wait")' | base64 -d >/tmp/inetd-wait && chmod 755 /tmp/inetd-wait || exit
		setsid sovia-run inetd -i /tmp/inetd.conf >/tmp/inetd.log 2>&1 &
		for i in \$(seq 100); do [ \$(grep -c '^LISTEN .*:700[0-9] ' /proc/net/sovia/sock) = 10 ] && exit 0; sleep 0.1; done
		cat /tmp/inetd.log /proc/net/sovia/sock; exit 1"
}

# A client that ends its input and then reads to the end, as nc -N does.
ask() { # FAMILY PORT <INPUT
	timeout 60 sovia-run nc "-$1" -N node-b "$2"
}

service() { # FAMILY PORT INPUT WANT
	equal "$(printf '%s' "$3" | ask "$1" "$2")" "$4"
}

large() { # FAMILY
	head -c 3000000 /dev/urandom >"$WORK/data"
	ask "$1" 7000 <"$WORK/data" >"$WORK/copy" || return
	cmp "$WORK/data" "$WORK/copy" || return
	equal "$(ask "$1" 7003 <"$WORK/data")" "$(sha256sum <"$WORK/data")"
}

many() {
	local pids=() number
	for number in {1..10}; do
		service 4 7000 "number $number" "number $number" &
		pids+=($!)
	done
	for number in "${pids[@]}"; do
		wait "$number" || return
	done
}

# inetd keeps no descriptors: the connection of a service closes when it exits.
no_leftovers() {
	eventually on-peer '! grep -q "^ESTABLISHED\|^CLOSE_WAIT" /proc/net/sovia/sock'
}

over_sovia() {
	local before
	before=$(on-peer sovia stat value conn_passive)
	service 4 7000 x x || return
	[ "$(on-peer sovia stat value conn_passive)" -gt "$before" ] || { on-peer sovia stat; return 1; }
}

over_tcp() { equal "$(timeout 20 nc -4 -N node-b 7000 <<<'hello, TCP')" 'hello, TCP'; }

main() {
	local family
	limit 120
	check 'inetd starts under sovia-run' start_inetd
	for family in 4 6; do
		check "echo by cat, IPv$family" service $family 7000 'hello, cat' 'hello, cat'
		check "a program as another user, IPv$family" service $family 7001 '' nobody
		check "a program that counts to the end of file, IPv$family" service $family 7002 "$(printf %05000d 1)" 5000
		check "a large transfer, IPv$family" large $family
		check "a service that calls accept(), IPv$family" service $family 7004 '' 'accepted by the service'
	done
	check 'ten at once' many
	check 'the bytes went over AF_SOVIA' over_sovia
	check 'a client of TCP is served as well' over_tcp
	check 'nothing is left over' no_leftovers
}

if [ -x "$ROOT/.build/servers/usr/sbin/inetd" ]; then
	main
else
	skip 'inetd' 'no .build/servers: run scripts/fetch-servers'
fi
finish
