#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Any user of a node may speak to its RDMA devices, but not for the node: links that are there stay, new ones are
# refused, and the service's place is the module's.  A node that has really lost its links gets new ones.
#
# vm: --pair --timeout 600 --append kunit.enable=0
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

IMPOSTOR=$HERE/../../.build/rogue_peer/impostor
# A port that the module itself never asks from.
RESERVED=600

count() { sovia-stat --value "$1"; }
ends() { echo "$(count link_down) $(count link_fail) $(there sovia-stat --value link_down)"; }

anyone() { there "setpriv --reuid=nobody --regid=nogroup --clear-groups -- $*"; }

# Asks for node-b's links.  Prints how many requests there were.
ask_as_anyone() { anyone "$IMPOSTOR" ask "$(address "$1" "$SOVIA_PEER")" "$(address "$1" "$SOVIA_NODE")"; }
ask_as_root() { there "$IMPOSTOR" ask "$(address "$1" "$SOVIA_PEER")" "$(address "$1" "$SOVIA_NODE")" $RESERVED; }

# Transfers of both families go on while "$@" happens, over the lanes that they began with.
unharmed() {
	local before v status pids=()
	before=$(ends)
	for v in 4 6; do
		socktool -$v flow "$SOVIA_PEER" 500$v "$WORK/flow$v" >"$WORK/answer$v" 2>&1 &
		pids+=($!)
		eventually test -e "$WORK/flow$v" || { cat "$WORK/answer$v"; return 1; }
	done
	"$@"
	status=$?
	rm "$WORK"/flow?
	wait "${pids[@]}"
	cat "$WORK"/answer?
	[ "$(grep -c ' bytes, the same$' "$WORK"/answer? | grep -c ':1$')" = 2 ] && equal "$(ends)" "$before" && [ $status = 0 ]
}

refused() { # ASK COUNTED
	local v asked before
	for v in 4 6; do
		before=$(count bad_port)
		asked=$("$1" $v) || { echo "over IPv$v: granted, or not even asked: $asked"; return 1; }
		echo "over IPv$v: $asked requests"
		equal "$(($(count bad_port) - before))" "$((asked * $2))" || return
	done
}

anyones_requests() { unharmed refused ask_as_anyone 1; }
roots_requests() { unharmed refused ask_as_root 0; }

# Without any socket, the module does not listen yet.
load() { # PARAMETER=VALUE...
	stop_server || return
	modprobe -r sovia && modprobe sovia "$@" && there "modprobe -r sovia && modprobe sovia"
}

no_place_for_anyone() {
	local v host answer
	for host in "$(address 4 "$SOVIA_PEER")" "$(address 6 "$SOVIA_PEER")" 0.0.0.0 ::; do
		answer=$(anyone "timeout 5 $IMPOSTOR" listen "$host" /tmp/place)
		there rm -f /tmp/place
		equal "$answer" EACCES || { echo "at $host"; return 1; }
	done
}

# The first one who needs the module on node-b has no rights.
first_of_all() {
	load || return
	there 'for v in 4 6; do setsid setpriv --reuid=nobody --regid=nogroup --clear-groups socktool -$v echo 500$v /tmp/echo$v >/dev/null 2>&1 & done'
	eventually there '[ -e /tmp/echo4 -a -e /tmp/echo6 ]' && socktool -4 ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006
}

# Its place is taken when the module would listen: it does as soon as it can, and no program has to help.
place_taken() {
	load || return
	there "setsid $IMPOSTOR listen 0.0.0.0 /tmp/place >/dev/null 2>&1 &"
	eventually there '[ -e /tmp/place ]' && start_server || return
	there rm /tmp/place
	eventually socktool -4 ask "$SOVIA_PEER" 5004 && eventually socktool -6 ask "$SOVIA_PEER" 5006
}

# Node-b loses its side, without a word to node-a.  (TCP, below siw, says it as soon as it can.)
reboot_there() {
	eval "$CUT" && there "$CUT && modprobe -r sovia; $MEND; modprobe sovia" && eval "$MEND" || return
	[ "$SOVIA_DEVICE" = siw ] || state_is UP
}
state_is() { grep -q "^$1 .* verbs" /proc/net/sovia/link || { cat /proc/net/sovia/link; return 1; }; }

begin() {
	over && load probe_interval=0 || return
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && there socktool ask "$SOVIA_NODE" 5014 && reboot_there
}

peer_asks() { begin && there socktool ask "$SOVIA_NODE" 5014; }

both_ask() {
	local status
	begin && start_server || return
	there socktool ask "$SOVIA_NODE" 5014 >"$WORK/there" 2>&1 &
	socktool ask "$SOVIA_PEER" 5004
	status=$?
	wait $! || { cat "$WORK/there"; return 1; }
	return $status
}

over() { rm -f "$WORK/echo"; stop_server && eventually no_links && eventually there no_links; }
no_links() { ! pgrep -x socktool >/dev/null; }

limit 150
check 'a server on the peer'				start_server
check 'requests of any user are refused and counted'	anyones_requests
check 'requests of root end no lane that answers'	roots_requests
check 'the module goes from both nodes'			load
check 'its place is for no other user'			no_place_for_anyone
check 'a user is the first to need it'			first_of_all
check 'its place was taken, and is free again'		place_taken
check_cut 'a node without its links asks for others'	peer_asks
check_cut '... and this one at the same time'		both_ask
check 'all ends'					over
finish
