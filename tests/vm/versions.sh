#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Nodes with neighbouring versions of the wire format work together, whoever asks: they use the newest that both have.
#
# vm: --pair --timeout 300 --append "kunit.enable=0 sovia.fallback=0"
# lab: it loads a second build of the module
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

RAISED=$HERE/../../.build/stock-raised/sovia.ko

# A process that ends leaves its memory, and with it its command line, before it closes its sockets: it is not to be
# seen any more, and the module is in use.
load() { eventually rmmod sovia || return; if [ "$1" = next ]; then insmod "$RAISED" fallback=0; else modprobe sovia; fi; }
both_load() { # HERE THERE
	stop_server
	there "RAISED=$RAISED; load $2" && load "$1"
}
speak() { # VERSION: all links to the other node
	local found
	found=$(sed -n 's/.* verbs .* version=\([0-9]*\).*/\1/p' /proc/net/sovia/link | sort -u)
	equal "$found" "$1" || { cat /proc/net/sovia/link; return 1; }
}
this_node_asks() { start_server && socktool -4 ask "$SOVIA_PEER" 5004 100000 && socktool -6 ask "$SOVIA_PEER" 5006 && speak "$1"; }
peer_asks() {
	local status
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && there socktool ask "$SOVIA_NODE" 5014 100000 && speak "$1"
	status=$?
	rm -f "$WORK/echo"
	return $status
}
# Another lane, another request: still the same.
recovers() { transferring break_lane && speak "$1"; }
break_lane() { echo all >/sys/kernel/debug/sovia/break; }

limit 120
check 'the peer has the next version'		both_load this next
check 'this node asks it'			this_node_asks 5
check '... and a lost lane is replaced'		recovers 5
check 'this node has the next version'		both_load next this
check 'it asks the peer'			this_node_asks 5
check 'the peer has the next version'		both_load this next
check '... and asks this node'			peer_asks 5
check 'this node has the next version'		both_load next this
check '... and is asked'			peer_asks 5
check 'both have it'				both_load next next
check '... and use it'				this_node_asks 6
check '... in a lane that is replaced, too'	recovers 6
check 'all is as before'			both_load this this
check '... and works'				this_node_asks 5
finish
