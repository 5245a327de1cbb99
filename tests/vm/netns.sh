#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Network namespaces: separate ports and counters, a loopback interface that is down, and cleanup after the last socket.
#
# A namespace with one end of a veth pair is gone when the other end has
# vanished, which happens when nothing pins the namespace any more.
#
# vm: --timeout 300
set -uo pipefail
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"
PATH=$(realpath "$(dirname "$0")")/lib:$PATH
HELD=$(mktemp -u)

gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		ip link show dev out >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	return 1
}

# The same port in two namespaces at once, each seeing its own traffic only.
separate() {
	ip netns exec box socktool talk 7777 || return 1
	socktool talk 7777 || return 1
	ip netns exec box grep -qx 'conn_active 1' /proc/net/sovia/stat
}

# Where packets would be lost nothing connects, and errors are TCP's.
as_tcp() {
	local tcp sovia
	tcp=$(unshare --net lo_down) && sovia=$(unshare --net sh -c 'sovia-run lo_down && sovia stat value conn_passive') || return
	equal "${sovia%$'\n'*}" "$tcp" && [ "${sovia##*$'\n'}" -ge 5 ]
}

modprobe veth
modprobe dummy
check "the loopback interface is not up, is, and is no longer" as_tcp
ip netns add box
ip link add out type veth peer name in netns box
ip -n box link set lo up
check "a namespace has its own ports and counters" separate
ip netns exec box socktool echo 7778 "$HELD" &
holder=$!
check "a server in one" eventually test -e "$HELD"
check "cannot be reached from another" equal "$(socktool connect 127.0.0.1 7778)" ECONNREFUSED
check "which has the port for itself" socktool talk 7778
ip netns del box
check "it still works when its namespace has lost its name" nsenter -t $holder -n socktool ask 127.0.0.1 7778
check "and the namespace still exists" ip link show dev out
rm "$HELD"
wait
check "a namespace that has been used can end" gone
check "and the module can be unloaded after it" modprobe -r sovia
finish
