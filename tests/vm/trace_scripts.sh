#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The bpftrace scripts: each names what has been done.
#
# vm: --pair --timeout 1200 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

SCRIPTS=$HERE/../../userland/trace
TCP_PORT=5041 DEAF_PORT=5042
PINGS=30 SIZE=1000

stat_of() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/sovia/stat; }
link_number() { sovia -j link show | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])'; }

# Its first lines are from BEGIN, when all probes are attached.
begun() { [ "$(wc -l <"$WORK/traced")" -ge 2 ]; }

# The output of a script, to which arguments may belong, while the rest of the line runs.
while_traced() { # "SCRIPT [ARGUMENT]" COMMAND...
	local script tracer status
	read -r -a script <<<"$1"
	shift
	stdbuf -oL bpftrace "$SCRIPTS/${script[0]}.bt" "${script[@]:1}" >"$WORK/traced" 2>&1 &
	tracer=$!
	# it compiles: half a minute and more in a guest
	until begun; do sleep 0.2; done
	"$@"
	status=$?
	kill -INT $tracer
	wait $tracer
	cat "$WORK/traced"
	! grep -qiE 'error|warning|lost' "$WORK/traced" && return $status
}
shows() { grep -qE -- "$1" "$WORK/traced" || { cat "$WORK/traced"; return 1; }; }

ping() { pingpong "$SOVIA_PEER" 5004 $PINGS $SIZE "$WORK/times" >"$WORK/lport"; }
tcp_server() {
	there "setsid python3 -c 'import socket, time; s = socket.create_server((\"\", $TCP_PORT)); time.sleep(900)' >/dev/null 2>&1 &
		eventually eval 'ss -tln | grep -q :$TCP_PORT'"
}
deaf_server() { there "setsid socktool hold-listener $DEAF_PORT $WORK/deaf >/dev/null 2>&1 & eventually test -e $WORK/deaf"; }
connects() { equal "$(socktool connect "$SOVIA_PEER" "$1")" ok; }
pumps() {
	local pump
	socktool pump "$SOVIA_PEER" $DEAF_PORT >"$WORK/pump" &
	pump=$!
	stalled=$(stat_of window_stall)
	eventually eval "[ \$(stat_of window_stall) -gt $stalled ]" && sleep 1
	# when the script has ended
	(sleep 10; kill $pump) >/dev/null 2>&1 &
}
asks() {
	local before
	before=$(stat_of credit_stall)
	while [ "$(stat_of credit_stall)" = "$before" ]; do
		socktool ask "$SOVIA_PEER" 5004 500000 || return
	done
	echo $(($(stat_of credit_stall) - before)) >"$WORK/stalls"
}
breaks() { transferring socktool break 1; }
only_tcp() { echo "out port $TCP_PORT only-tcp" | sovia rule replace && connects $TCP_PORT && sovia rule flush; }
three() { connects 5004 && connects $TCP_PORT; }

limit 300
check 'an echo server'				start_server
check 'a listener of TCP'			tcp_server
check 'a listener whose program does not accept' deaf_server
check 'connections'				while_traced connect three
check '... AF_SOVIA'				shows '^[0-9:]+ +[0-9]+ +5004 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ ESTABLISHED$'
check '... and one that was refused'		shows " $TCP_PORT +- +- +- +[0-9]+ CLOSE\$"
check 'a fallback'				while_traced fallback connects $TCP_PORT
check '... for want of a listener'		shows " out +[0-9]+ +$TCP_PORT listener +[0-9]+ [0-9a-f]+\$"
check '... once'				shows '^@fallbacks\[listener\]: 1$'
check 'a rule'					while_traced rules only_tcp
check '... at that port'			shows " out +$TCP_PORT +0 only-tcp +::ffff:$(address 4 "$SOVIA_NODE") -> ::ffff:$(address 4 "$SOVIA_PEER")\$"
check '... once'				shows '^@rules\[0, only-tcp\]: 1$'
check 'a reader that does not read'		while_traced window pumps
check '... makes the writer wait'		shows "^@stalls\[[0-9]+, $DEAF_PORT\]: "
check '... to the end'				shows "^@waiting_since\[[0-9]+, $DEAF_PORT\]: [0-9:]+\$"
check 'a transfer'				while_traced credit asks
check '... that waits for credit'		shows "^@stalls\[$(link_number)\]: $(cat "$WORK/stalls")\$"
check '... and goes on'				shows "^@us\[$(link_number)\]:"
check 'round trips'				while_traced messages ping
check '... of two messages'			shows "^@sent\[$(link_number), DATA\]: $PINGS\$"
check '... that are as long'			shows '^\[512, 1K\) +30 '
check 'a recovery'				while_traced recovery breaks
check '... begins'				shows " $(link_number) .* UP +-> RECOVERING .*::ffff:$(address 4 "$SOVIA_PEER") verbs\$"
check '... and ends'				shows " $(link_number) .* RECOVERING -> UP "
check 'round trips of one port'			while_traced 'time 5004' ping
for phase in '1 program' '2 copied' '3 posted' '4 answer' '5 arrived'; do
	check "... $phase"			shows "^@ns\[$phase\]: count (29|30), average [1-9]"
done
check 'nothing of another port'			while_traced 'time 1' ping
deny '... not this one'				shows '^@ns\['
finish
