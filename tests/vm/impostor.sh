#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Any user of a node may use its RDMA devices, but not impersonate the node: existing links stay, new ones are
# refused, and only the module may listen at the service.  A node that has lost its links gets new ones.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

IMPOSTOR=$HERE/../../.build/rogue_peer/impostor
# A port that the module itself never uses as source.
RESERVED=600

count() { sovia stat value "$1"; }
ends() { echo "$(count link_down) $(count link_fail) $(there sovia stat value link_down)"; }

anyone() { there "setpriv --reuid=nobody --regid=nogroup --clear-groups -- $*"; }

# Requests node-b's links.  Prints the number of requests, and that of those without a hello.
ask_as_anyone() { anyone "$IMPOSTOR" ask "$(address "$1" "$SOVIA_PEER")" "$(address "$1" "$SOVIA_NODE")"; }
ask_as_root() { there "$IMPOSTOR" ask "$(address "$1" "$SOVIA_PEER")" "$(address "$1" "$SOVIA_NODE")" $RESERVED; }

# Transfers of both families continue while "$@" runs, over the same lanes.
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

refused() { # ASK COUNTER BARE_COUNT_TOO
	local v asked bare before
	for v in 4 6; do
		before=$(count "$2")
		asked=$("$1" $v) || { echo "over IPv$v: granted, or not even asked: $asked"; return 1; }
		read -r asked bare <<<"$asked"
		echo "over IPv$v: $asked requests, and $bare without a hello"
		[ "$3" = yes ] || bare=0
		equal "$(($(count "$2") - before))" "$((asked + bare))" || return
	done
}

anyones_requests() { unharmed refused ask_as_anyone bad_port yes; }
roots_requests() { unharmed refused ask_as_root bad_mac no; }

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

# The first user of the module on node-b is unprivileged.
first_of_all() {
	load || return
	there 'for v in 4 6; do setsid setpriv --reuid=nobody --regid=nogroup --clear-groups socktool -$v echo 500$v /tmp/echo$v >/dev/null 2>&1 & done'
	eventually there '[ -e /tmp/echo4 -a -e /tmp/echo6 ]' && socktool -4 ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006
}

# The service's port is in use when the module wants to listen: it retries until it can, without a program's help.
place_taken() {
	load || return
	there "setsid $IMPOSTOR listen 0.0.0.0 /tmp/place >/dev/null 2>&1 &"
	eventually there '[ -e /tmp/place ]' && start_server || return
	there rm /tmp/place
	eventually socktool -4 ask "$SOVIA_PEER" 5004 && eventually socktool -6 ask "$SOVIA_PEER" 5006
}

# Node-b loses its links without notifying node-a.  (TCP, below siw, notifies it as soon as it can.)
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
check 'requests of unprivileged users are refused and counted'	anyones_requests
check 'nor does root of the peer get anything with them'	roots_requests
check 'the module is reloaded on both nodes'		load
check 'no other user can listen at the service'		no_place_for_anyone
check 'an unprivileged user is the first to open a socket'	first_of_all
check 'the service was in use, and is free again'	place_taken
check_cut 'a node without its links asks for others'	peer_asks
check_cut '... and this one at the same time'		both_ask
check 'all ends'					over
finish
