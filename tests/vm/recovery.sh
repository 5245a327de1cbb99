#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Lanes that die under their connections: data in flight arrives nevertheless, once and
# in order, and a dead peer is detected.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

LANES=50

short_connects

count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/sovia/stat; }
state_is() { grep -q "^$1 .* $SOVIA_LINK" /proc/net/sovia/link; }
parameter() { echo "$2" >/sys/module/sovia/parameters/"$1"; }

break_one() { echo all >/sys/kernel/debug/sovia/break; } 2>/dev/null
break_for_good() { break_one && eventually link_gone; }

# A server whose lanes fail quickly and are given up soon, or not.
load() { # PARAMETER=VALUE...
	stop_server || return
	modprobe -r sovia && modprobe sovia probe_interval=1 ack_timeout=14 "$@" || return
	there "modprobe -r sovia && modprobe sovia probe_interval=1 ack_timeout=14 $*" || return
	start_server
}

# The first requests for a link are lost: the connection manager retransmits in time.
request_lost() {
	local before answer
	before=$(count link_fail)
	ping -c 1 "$SOVIA_PEER" >/dev/null && there "$CUT" || return
	# siw has TCP's SYN, which waits longer than a step for its third repetition.
	{ if [ "$SOVIA_DEVICE" = siw ]; then sleep 3; else sleep 7; fi; there "$MEND"; } &
	answer=$(socktool connect "$SOVIA_PEER" 5004)
	wait $!
	equal "$answer" ok && equal "$(count link_fail)" "$before"
}

# A transfer has to survive "$@", which breaks lanes.
survives() {
	local before again
	before=$(count link_recover)
	again=$(count tx_again)
	transferring "$@" || return
	recovered=$(($(count link_recover) - before))
	echo "$recovered lanes replaced, $(($(count tx_again) - again)) messages sent again"
	[ $recovered -gt 0 ]
}

both_sides() {
	socktool break $LANES && there socktool break $LANES
}

# Those of the peer as well.  One that the peer breaks as soon as it is up there may
# never have been up here.
many_lanes() {
	survives both_sides || return
	[ "$recovered" -gt $((LANES + LANES / 2)) ]
}

no_complaints() {
	awk '/^bad_|^link_down|^link_recover_fail/ && $2 { print; bad = 1 } END { exit bad }' /proc/net/sovia/stat
}

short_ones() {
	local i
	for i in {1..20}; do
		socktool ask "$SOVIA_PEER" 5004 3000 || { echo "connection $i"; return 1; }
	done
}
short_connections() {
	local askers status=0 pid
	short_ones & askers=$!
	short_ones & askers+=" $!"
	socktool break 30 || status=1
	for pid in $askers; do
		wait "$pid" || status=1
	done
	return $status
}

device_anew() {
	delete_device && sleep 1 && add_device && eventually state_is UP
}

# No packets in either direction, until it is restored.  (What is dropped on its way out stays with
# the device, which retransmits for ever.)
deaf() { there "$CUT" && eval "$CUT"; }
mended() { there "$MEND" && eval "$MEND"; }

# The peer gives up its link, and then is reachable again.
peer_forgets() {
	there parameter recovery_timeout 1 || return
	deaf || return
	break_one
	there eventually link_gone
	mended
	there parameter recovery_timeout 60
	eventually state_is_not RECOVERING
}
link_gone() { ! grep -q "$SOVIA_LINK" /proc/net/sovia/link; }
state_is_not() { ! state_is "$1"; }

# No socket is open, and the wire is cut.
unloads_recovering() {
	stop_server || return
	socktool connect "$SOVIA_PEER" 5004
	# the lane may have failed by itself
	deaf && { break_one; eventually state_is RECOVERING; } && modprobe -r sovia
	local status=$?
	mended
	modprobe sovia
	return $status
}

limit 240
check 'lanes that fail soon'			load
if [ "$SOVIA_LINK" = verbs ]; then
	check_cut 'a lost request is retransmitted'	request_lost
else
	skip 'a lost request is retransmitted'		'no request is lost in memory'
fi
check 'a transfer survives a hundred lanes'	many_lanes
check 'no protocol errors'			no_complaints
check '... there'				there no_complaints
check 'short connections do, too'		short_connections
check 'no protocol errors from those'		no_complaints
check_cut 'a transfer survives a cut of 10 s'	survives wire_cut 10
check_device '... its device recreated'		survives device_anew
check_device '... the device of its peer recreated'	survives there device_anew
check 'no protocol errors from that'		no_complaints
check_cut 'a user timeout expires during recovery'	watched ETIMEDOUT wire_cut 8 -- 0.5 TCP_USER_TIMEOUT=2000
check_cut 'without one, a cut does no harm'		watched alive wire_cut 8 -- 0.5 TCP_NODELAY=1
check_cut 'the peer loses its link'			watched ECONNRESET peer_forgets -- 0.5 TCP_NODELAY=1
check 'recovery limited to three seconds'	load recovery_timeout=3
check_cut 'a peer that is down'			watched ETIMEDOUT wire_cut 12 -- 0.5 TCP_NODELAY=1
check 'no recovery'				load recovery_timeout=0
check 'connections end with their lane'		watched ECONNRESET break_for_good -- 0.5 TCP_NODELAY=1
check 'recovery again'				load
check_cut 'the module unloads during recovery'	unloads_recovering
finish
