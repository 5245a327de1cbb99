#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# clan.sh [SECONDS]: links in memory that two virtual machines share: they are found, survive what lanes survive, go on over verbs
# without it, and a node that scribbles over it, or asks without end, harms nothing else.
#
# vm: --pair --clan --timeout 600 --append kunit.enable=0
# lab: virtual machines share memory on one host only
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

NONSENSE=${1:-5}

has_memory() { dmesg | grep -q "sovia-clan $(memory_device): node [0-9] of 4 in memory" && [ -e "$(memory_driver)/$(memory_device)" ]; }
links_are() { # PROVIDER: all that are up
	local found
	found=$(awk '$1 == "UP" { print $4 }' /proc/net/sovia/link | sort -u)
	equal "$found" "$1" || { cat /proc/net/sovia/link; return 1; }
}
break_lane() { echo all >/sys/kernel/debug/sovia/break; }
break_lanes() { socktool break 20; }

# Of an interface, which a message in the memory does not come by.
LINK_LOCAL=$(there 'ip -6 -o addr show dev "$SOVIA_NETDEV" scope link' | awk '{ sub("/.*", "", $4); print $4; exit }')

# By every link: one that nobody asks for stays over verbs.
this_node_asks() {
	socktool -4 ask "$SOVIA_PEER" 5004 100000 && socktool -6 ask "$SOVIA_PEER" 5006 100000 &&
		socktool -6 ask "$LINK_LOCAL%$SOVIA_NETDEV" 5006 100000
}
peer_asks() {
	local status
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && there socktool ask "$SOVIA_NODE" 5014 100000
	status=$?
	rm -f "$WORK/echo"
	return $status
}
asks_over() { this_node_asks && links_are "$1"; }
link_local() { grep -q "^UP fe80::.* $LINK_LOCAL clan" /proc/net/sovia/link; }
short_ones() {
	local i
	for i in {1..50}; do
		socktool ask "$SOVIA_PEER" 5004 3000 || { echo "connection $i"; return 1; }
	done
}

# Longer than an interrupt may be late, and than probes wait.
pause() { echo pause >/run/host; sleep "$1"; echo resume >/run/host; }

goes_on_over_verbs() { transferring unbind && eventually links_are verbs; }
comes_back() { bind && recovers; }
peer_goes_on() { transferring there unbind && eventually links_are verbs; }
peer_comes_back() { there bind && recovers; }

# The kernel's part of the monitor's device_del.  (QEMU 7.2 without KVM crashes when the other end rings then.)
remove() { echo 1 >/sys/bus/pci/devices/"$(memory_device)"/remove; }
rescan() { echo 1 >/sys/bus/pci/rescan; }
removed() { transferring remove && eventually links_are verbs; }
found_again() { rescan && recovers; }
peer_removed() { transferring there remove && eventually links_are verbs; }
peer_found_again() { there rescan && recovers; }

unload() { modprobe -r sovia && modprobe sovia; }
peer_reloads() { stop_server && there unload && start_server && eventually asks_over clan; }
reloads() { unload && eventually asks_over clan; }

# By another one that has the memory.  Connections in it may end, or bring nonsense.
scribbled() { # SECONDS [flood]
	local asked=0 failed=0 end=$((SECONDS + $1)) before
	before=$(violations)
	echo "scribble $*" >/run/host
	while [ $SECONDS -lt $end ]; do
		if timeout 20 socktool ask "$SOVIA_PEER" 5004 100000; then
			asked=$((asked + 1))
		else
			failed=$((failed + 1))
		fi
	done
	echo "$asked connections, $failed ended"
	shift
	nonsense_is_found "$before" "$@"
	ping -c 1 -W 5 "$SOVIA_PEER" >/dev/null
}
# By another one that asks for VIs and reads no answer: what waits for it is bounded.
slab() { awk '$1 == "SUnreclaim:" { print $2 }' /proc/meminfo; }
unread() { sovia stat value clan_refused; }
asked_without_end() { # SECONDS
	local before grown refused
	before=$(slab) refused=$(unread)
	# what waits is freed when it has gone
	echo "scribble $((2 * $1)) ask" >/run/host
	transferring sleep "$1" || return
	grown=$(($(slab) - before)) refused=$(($(unread) - refused))
	sleep "$1"
	echo "$refused answers refused, $grown KiB more in use"
	[ "$refused" -gt 10000 ] && [ "$grown" -lt 4096 ]
}
# By another one, too.
rung_for_nothing() { echo "storm $1" >/run/host; transferring sleep "$1"; } # SECONDS
# Links that are up over verbs stay there.
one_more_try() { break_lane; sleep 1; asks_over clan; }
recovers() { eventually one_more_try; }
# It is left alone for longer each time.
recovers_later() { recovers || recovers; }

# Nobody has asked anybody for anything yet.
without_sockets() {
	modprobe -r sovia && modprobe sovia rendezvous=0 && unbind && bind && has_memory && equal "$(used)" 0
}
used() { awk '$1 == "sovia" { print $3 }' /proc/modules; }

no_devices() { delete_rdma && there delete_rdma; }
tcp_after_that() { # one connection of before ends
	watched ETIMEDOUT unbind -- 0.5 TCP_NODELAY=1 && eventually kind_is 6
}
again() { bind && recovers; }
parameter() { echo "$2" >/sys/module/sovia/parameters/"$1"; }

limit 120
check 'both have the memory'				has_memory
check '... the peer, too'				there has_memory
check 'a server there'					start_server
check 'connections find it'				this_node_asks
check '... and are in it'				links_are clan
check '... and that of a link-local address'		link_local
check 'the peer asks'					peer_asks
check '... in the same link'				links_are clan
check 'short connections'				short_ones
check 'a transfer'					transferring sleep 3
check 'lanes are replaced'				transferring break_lanes
check '... in the memory'				links_are clan
check 'a peer that is paused for 2 s'			transferring pause 2
check '... for 15 s'					transferring pause 15
check '... the link is in the memory again'		recovers
check 'without the device it goes on over verbs'	goes_on_over_verbs
check '... and comes back'				comes_back
check 'without that of the peer, too'			peer_goes_on
check '... and comes back'				peer_comes_back
check 'the device is removed'				removed
check '... and found again'				found_again
check 'that of the peer is'				peer_removed
check '... and found again'				peer_found_again
check 'doorbells ring for nothing'			rung_for_nothing 5
check '... links stay in it'				asks_over clan
check 'requests without end'				asked_without_end 10
check '... links stay in it'				asks_over clan
check 'the module is loaded anew'			reloads
check 'that of the peer is'				peer_reloads
limit $((120 + NONSENSE))
check 'nonsense is written into all of it'		scribbled "$NONSENSE"
check '... without a pause'				scribbled "$NONSENSE" flood
limit 120
check 'links come back into it'				recovers_later
check '... whoever asks'				peer_asks
check 'no other devices'				no_devices
check 'a short recovery'				parameter recovery_timeout 2
check 'without the memory: TCP'				tcp_after_that
check 'with it again'					again
check '... both ways'					peer_asks
check 'memory comes and goes before there is a socket'	without_sockets
finish
