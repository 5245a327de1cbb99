#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# VRFs: domains with the same addresses, which do not share links, and whose listeners
# are those that TCP's packets would find.
#
#     red:  r0 10.71.0.1 fd00:71::1      blue:  b0 10.71.0.1 fd00:71::1
#
# vm: --append "kunit.enable=0 sovia.fallback=0"
set -uo pipefail
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"
PATH=$(realpath "$(dirname "$0")")/lib:$PATH

domain() { # NAME TABLE DEVICE
	ip link add "$1" type vrf table "$2"
	ip link set "$1" up
	ip link add "$3" type dummy
	ip link set "$3" master "$1" up
	ip addr add 10.71.0.1/24 dev "$3"
	ip addr add fd00:71::1/64 nodad dev "$3"
}

# Connections from each domain to itself stay open: how many links are there between the addresses?
links() {
	python3 - <<-'END'
		import socket
		import sovia
		held = []
		for device in (b"red", b"blue"):
		    listener, client = sovia.socket(), sovia.socket()
		    for sock in (listener, client):
		        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
		    listener.bind(("10.71.0.1", 7202))
		    listener.listen()
		    client.connect(("10.71.0.1", 7202))
		    held += [listener, client, listener.accept()[0]]
		with open("/proc/net/sovia/link") as file:
		    print(sum("10.71.0.1" in line for line in file))
	END
}
PYTHONPATH=$(realpath "$(dirname "$0")")/lib
export PYTHONPATH

modprobe -a vrf dummy
# Local addresses of a domain are looked up in the domain first.
ip rule add pref 32765 table local
ip rule del pref 0
ip -6 rule add pref 32765 table local
ip -6 rule del pref 0
domain red 71 r0
domain blue 72 b0
limit 100
for accept in 0 1; do
	sysctl -qw net.ipv4.tcp_l3mdev_accept=$accept
	check "IPv4, tcp_l3mdev_accept=$accept" vrf_matrix 72$accept$accept 10.71.0.1 red blue r0
	check "IPv6, tcp_l3mdev_accept=$accept" vrf_matrix 73$accept$accept fd00:71::1 red blue r0
done
sysctl -qw net.ipv4.tcp_l3mdev_accept=0
check "two domains with the same address have a link each" equal "$(links)" 2
finish
