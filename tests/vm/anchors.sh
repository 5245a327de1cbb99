#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Anchors: one whose peer is silent ends while a message is under way, and other kernels may ask while the module is
# being loaded in vain.
#
# vm: --pair --timeout 300 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

local_of() { address "$1" "$SOVIA_NODE"; }
ask() { socktool -4 ask "$SOVIA_PEER" 5004; }
ask_back() { there socktool -4 ask "$SOVIA_NODE" 5014; }
serve_back() {
	rm -f "$WORK/echo"
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
end_back() { rm -f "$WORK/echo"; eventually no_echo; }

# ---- silence ----

anchor() { ss -Htn state established '( dport = :298 )'; }
asked() { ask && [ -n "$(anchor)" ]; }
# Its host lets nothing pass of connections that it did not see begin, and nothing tells this node of the end.
another_kernel() {
	stop_server && there 'nft add table inet new && nft "add chain inet new in { type filter hook input priority 0; }" &&
		nft add rule inet new in tcp dport 298 drop &&
		nft "add chain inet new out { type filter hook output priority 0; }" &&
		nft add rule inet new out tcp sport 298 drop && eventually modprobe -r sovia && modprobe sovia' && [ -n "$(anchor)" ]
}
# The column of what has not been acknowledged; or it has ended already.
pinged() {
	local queued
	queued=$(anchor | awk '{ print $2 }')
	[ "${queued:-1}" -gt 0 ]
}
# Its HELLO is answered by BUSY, and a PING asks the kernel of before.
asks_here() { serve_back && { ask_back >/dev/null 2>&1 & } && eventually pinged; }
# Keepalive would take half a minute.  TCP by itself takes a quarter of an hour.
ends() {
	local end=$((SECONDS + 60))
	while [ -n "$(anchor)" ]; do
		[ $SECONDS -lt $end ] || { ss -tnoi '( dport = :298 )'; return 1; }
		sleep 0.5
	done
}
no_rules() { there nft delete table inet new; }

# ---- a load that fails ----

leave() { there eventually modprobe -r sovia && eventually modprobe -r sovia; }
# The family's number is taken, which is found out after the ports have been opened.
loads_in_vain() {
	local knocker round status=0
	there touch /tmp/knock
	there "stranger knock $(local_of 4) /tmp/knock" >"$WORK/knocked" 2>&1 &
	knocker=$!
	eventually there test -s /tmp/knock || return
	for round in {1..10}; do
		! modprobe -q sovia family=1 || { echo "round $round: it is loaded"; status=1; break; }
	done
	there rm /tmp/knock
	wait $knocker
	cat "$WORK/knocked"
	# or nothing has been tried
	[ "$(<"$WORK/knocked")" -gt 0 ] && return $status
}
comes_back() { there modprobe sovia && modprobe sovia && start_server && serve_back; }

limit 90
check 'a server on the peer'				start_server
check 'an anchor'					asked
check 'the peer is another kernel, whose host is silent'	another_kernel
check 'it asks, and so is the one of before'		asks_here
check 'whose anchor ends'				ends
check '... so that the new one is welcome'		eventually ask_back
check 'the rules go'					no_rules
check 'the servers end'					end_back
check 'no kernel is there'				leave
check 'the peer asks while the module is loaded in vain'	loads_in_vain
check 'all is as before'				comes_back
check 'the peer asks'					ask_back
check 'this node asks'					ask
finish
