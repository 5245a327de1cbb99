#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# RDMA devices in other network namespaces than the first: none is used that the administrator has not moved there, unless
# the module parameter verbs_namespaces says otherwise.  A macvlan above the device's interface is TCP's then, at once.
#
# vm: --pair --profile mlx5 --timeout 500 --append kunit.enable=0
# lab: rxe cannot be moved but with tests/devprofile
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

BOX=10.77.0.77
short_connects

reload() { eventually modprobe -r sovia && modprobe sovia "$@" && sovia set fallback 1; }
box() { ip netns exec box "$@"; }
devices() { sovia "$@" -j device show | python3 -c 'import json, sys
print(*[device["name"] for device in json.load(sys.stdin)])'; }
devices_are() { equal "$(devices)" "$SOVIA_RDMA" && equal "$(devices -n box)" "$1"; }

macvlan() {
	ip netns add box && ip link add link "$SOVIA_NETDEV" name in netns box type macvlan mode bridge &&
		ip -n box addr add $BOX/24 dev in && ip -n box link set in up && ip -n box link set lo up
}
# The box's kernel may have links: it is the same one.
open_box() { box sysctl -qw net.sovia.rendezvous=2 net.sovia.fallback=1; }
# What carries a connection of the box to the peer, and does its own reach the box?
box_uses() { # PROTOCOL
	equal "$(box env PYTHONPATH="$HERE/lib" python3 -c 'import socket, sovia, sys
s = sovia.socket()
s.connect((sys.argv[1], 5004))
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))' "$SOVIA_PEER")" "$1"
}
none_over_verbs() { equal "$(box sovia stat value verbs_tx_msgs)" 0 && ! box grep verbs /proc/net/sovia/link; }

# The RDMA core keeps a namespace for a while after its end.
exclusive() { ip netns del box && eventually rdma system set netns exclusive && ip netns add box; }
in_box() { equal "$(devices -n box)" "$1" && equal "$(devices)" ''; }
moved() { rdma dev set "$SOVIA_RDMA" netns box && in_box ''; }

modprobe macvlan
check 'a server on the peer'				start_server
check 'a macvlan above the interface'			macvlan
check '... has no RDMA device'				devices_are ''
check '... its connections are TCP'			open_box
check '... to the peer'					box_uses 6
check '... and nothing is tried over verbs'		none_over_verbs
check 'verbs_namespaces=2: it is shared'		reload verbs_namespaces=2
check '... with that namespace'				devices_are "$SOVIA_RDMA"
check 'verbs_namespaces=0: it is not'			reload verbs_namespaces=0
check '... with that namespace, again'			devices_are ''
check 'in the exclusive mode'				exclusive
check '... a device of the first namespace is its own'	devices_are ''
check '... nor is one that is moved'			moved
check '... with the default'				reload
check '... it is'					in_box "$SOVIA_RDMA"
finish
