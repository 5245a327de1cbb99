#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Links that have nothing to say give their queue pairs up, and get others for the next message; windows of lanes
# begin small and grow.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

PORT=5710

count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/sovia/stat; }
state_is() { [ "$(awk '{ print $1 }' /proc/net/sovia/link | sort -u)" = "$1" ]; }
both_are() { state_is "$1" && there state_is "$1"; }
window() { sed -n 's/.* window=\([0-9]*\) .*/\1/p' /proc/net/sovia/link | sort -n | tail -n 1; }

start() { # PARAMETER=VALUE...
	stop
	modprobe -r sovia && modprobe sovia probe_interval=1 idle_links=0 ack_timeout=14 "$@" || return
	there "modprobe -r sovia && modprobe sovia probe_interval=1 idle_links=0 ack_timeout=14 $*" || return
	serve
}
serve() { there "setsid idle serve $PORT $WORK/serve >/dev/null 2>&1 & eventually test -e $WORK/serve"; }
# Not the shell that there() runs, whose command line has the word as well.
ended() { ! pgrep -f "^[^ ]*python3 .*/idle $1" >/dev/null; }
end() { pkill -f "^[^ ]*python3 .*/idle $1"; eventually ended "$1"; }
stop() { there "end serve; rm -f $WORK/serve"; }

# A connection, idle until the link is parked; then "$@" runs, and the connection goes on.
idle_during() { # WANTED OPTIONS COMMAND...
	local wanted=$1 options=$2 answer pid
	shift 2
	# shellcheck disable=SC2086 # words
	idle say "${TARGET:-$SOVIA_PEER}" $PORT "$WORK/idle" $options >"$WORK/answer" 2>&1 &
	pid=$!
	eventually test -e "$WORK/idle" || { cat "$WORK/answer"; return 1; }
	eventually both_are PARKED || { cat /proc/net/sovia/link; return 1; }
	"$@" || return
	rm -f "$WORK/idle"
	wait $pid
	answer=$(cat "$WORK/answer")
	echo "$answer"
	[ "$answer" = "$wanted" ]
}

parks() {
	local parked resumed
	parked=$(count link_park) resumed=$(count link_resume)
	idle_during ok '' true || return
	[ "$(count link_park)" -gt "$parked" ] && [ "$(count link_resume)" -gt "$resumed" ] &&
		equal "$(count link_recover)" 0
}
ipv6_too() { TARGET=$(address 6 "$SOVIA_PEER") parks; }

# The peer's answer comes 6 s after it was asked for; our own line so long.
crossing() {
	local at
	for at in 5.6 5.9 6 6.1 6.3; do
		echo "$at"
		equal "$(idle say "${TARGET:-$SOVIA_PEER}" $PORT "$WORK/idle" both=$at)" ok || return
		rm "$WORK/idle"
	done
}
chatting() {
	local parked
	parked=$(count link_park)
	idle chat "$SOVIA_PEER" $PORT 60 || return
	echo "parked $(($(count link_park) - parked)) times"
	[ "$(count link_park)" -gt $((parked + 2)) ]
}
# The kernel's reclaim asks for idle links.
state4_is() { awk -v peer=":$(address 4 "$SOVIA_PEER")" -v state="$1" 'index($3, peer) { found = $1 } END { exit found != state }' /proc/net/sovia/link; }
reclaims() {
	local pid
	parameter idle_links 64 && there parameter idle_links 64 || return
	idle say "$SOVIA_PEER" $PORT "$WORK/idle" >"$WORK/answer" 2>&1 &
	pid=$!
	eventually test -e "$WORK/idle" && sleep 5 && state4_is UP || return
	echo 2 >/proc/sys/vm/drop_caches
	eventually state4_is PARKED || return
	parameter idle_links 0 && there parameter idle_links 0 || return
	rm -f "$WORK/idle"
	wait $pid
	equal "$(cat "$WORK/answer")" ok
}
another() { equal "$(idle say "${TARGET:-$SOVIA_PEER}" $PORT "$WORK/other" & eventually test -e "$WORK/other"; rm "$WORK/other"; wait)" ok; }
# Its program ends while nothing gets through, and its link in vain tries to say so.
no_link() { ! grep -q ":$(address 4 "$SOVIA_PEER") verbs" /proc/net/sovia/link; }
forgotten() {
	there parameter recovery_timeout 1 && eval "$CUT" && there "$CUT" && stop && there eventually no_link &&
		eval "$MEND" && there "$MEND" && there parameter recovery_timeout 60 && serve
}
parameter() { echo "$2" >/sys/module/sovia/parameters/"$1"; }
cut_for_good() { there "$CUT"; }
cut_a_while() { wire_cut 5; }
renew_device() { delete_rdma && there delete_rdma && there add_rdma && add_rdma; }
unload() { end say && modprobe -r sovia && stop && there 'modprobe -r sovia'; }

# How far depends on how fast the other machine is.
grown() { [ "$(window)" -ge 8 ] && [ "$(there window)" -ge 8 ]; }
grows() {
	local before
	equal "$(idle say "${TARGET:-$SOVIA_PEER}" $PORT "$WORK/idle" & eventually test -e "$WORK/idle"; window; rm "$WORK/idle"; wait)" $'4\nok' || return
	before=$(count window_grow)
	start_server && transferring eventually grown || return
	stop_server || return
	[ "$(count window_grow)" -gt "$before" ]
}

limit 90
if [ "$SOVIA_LINK" != verbs ]; then
	skip 'parked links' 'only links over verbs are parked'
	finish
	exit
fi
check 'a server, and links that are parked when idle'	start
check 'a window begins small, and grows'		grows
check 'an idle link is parked, and resumed'		parks
check 'with IPv6, too'					ipv6_too
check 'the peer resumes it'				idle_during ok theirs true
check 'both do, at the same time'			crossing
check 'a new connection does'				idle_during ok '' another
check 'memory is short'				reclaims
check 'messages now and then'				chatting
check 'the peer'\''s program ends meanwhile'		idle_during ok end stop
check 'a server again'					serve
check_device 'devices are renewed meanwhile'		idle_during ok '' renew_device
check_cut 'the network is away for a while'		idle_during ok '' cut_a_while
check_cut 'keepalive finds a peer dead'			idle_during ETIMEDOUT keepalive=4 cut_for_good
check_cut 'the network is mended'			there "$MEND"
check_cut 'the peer has lost its end meanwhile'		idle_during ECONNRESET '' forgotten
check 'the module is unloaded meanwhile'		idle_during '' '' unload
finish
