#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Network namespaces: own ports, own counters, and an end.
#
# A namespace with one end of a veth pair in it is gone when the other end has
# vanished, which it does when nothing pins the namespace any more.
#
# vm: --timeout 120
set -uo pipefail
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"

# Opens an AF_SOVIA connection over loopback and says one word through it.
talk() {
	cat <<'PY'
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
family = int(open("/sys/module/sovia/parameters/family").read())
def sovia():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 6,
                         fileno=libc.socket(family, socket.SOCK_STREAM, 0))
listener = sovia()
listener.bind(("127.0.0.1", 7777))
listener.listen(1)
near = sovia()
near.connect(("127.0.0.1", 7777))
far, _ = listener.accept()
near.sendall(b"word")
assert far.recv(10) == b"word"
PY
}

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
	talk >/tmp/talk.py
	ip netns exec box python3 /tmp/talk.py || return 1
	python3 /tmp/talk.py || return 1
	ip netns exec box grep -qx 'conn_active 1' /proc/net/sovia/stat
}

modprobe veth
ip netns add box
ip link add out type veth peer name in netns box
ip -n box link set lo up
check "a namespace has its own ports and counters" separate
ip netns del box
check "a namespace that has been used can end" gone
check "and the module goes after it" modprobe -r sovia
finish
