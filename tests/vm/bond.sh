#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A device that comes while connections are TCP's for want of one is used at once.
#
# Bonds.  In mode active-backup the RDMA device is the bond's, as a card that bonds its ports has it: when the bond moves to its
# other port it has another MAC address, rdma_cm ends what is connected on both nodes, and links recover; connections go on.
# Where the ports of a bond that uses all have devices of their own, nothing comes back to the one that has asked: connections
# are TCP's.
#
#     node-a, bond0 (m1, m2)  ------  eth0, node-b
#
# vm: --pair --timeout 600 --append "kunit.enable=0"
# lab: the ports are macvlan devices on the wire
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

ADDRESS=$(address 4 "$SOVIA_NODE")

# Carries this node's IPv4 address, for which the interface below must not answer.
make_bond() { # PORTS OPTION...
	local port ports=$1
	shift
	modprobe bonding max_bonds=0 && modprobe macvlan && sysctl -qw net.ipv4.conf.all.arp_ignore=1 || return
	ip link add bond0 type bond miimon 100 "$@" || return
	for port in $ports; do
		ip link add link "$SOVIA_NETDEV" name "$port" type macvlan mode bridge && ip link set "$port" master bond0 || return
	done
	ip addr del "$ADDRESS/24" dev "$SOVIA_NETDEV" && ip link set bond0 mtu "$(<"/sys/class/net/$SOVIA_NETDEV/mtu")" up &&
		ip addr add "$ADDRESS/24" dev bond0 && eventually is_up && there "ip neigh flush all; ping -c 1 -w 10 $ADDRESS" >/dev/null
}
is_up() { equal "$(</sys/class/net/bond0/operstate)" up; }
end_bond() { delete_rdma && ip link del bond0 && ip link del m1 && ip link del m2 && ip addr add "$ADDRESS/24" dev "$SOVIA_NETDEV"; }
on_bond() { delete_rdma && rdma link add "$SOVIA_RDMA" type "$SOVIA_DEVICE" netdev bond0; }
on_port() { rdma link add "$SOVIA_RDMA" type "$SOVIA_DEVICE" netdev m1 && eventually has_address; }
# Its table of addresses has that of the bond.
# shellcheck disable=SC2086 # four words
has_address() { grep -qxi "0000:0000:0000:0000:0000:ffff:$(printf '%02x%02x:%02x%02x' ${ADDRESS//./ })" "/sys/class/infiniband/$SOVIA_RDMA/ports/1/gids/"*; }

active() { cat /sys/class/net/bond0/bonding/active_slave; }
# The active port fails, under way; and is there again, as the backup.
port_fails() {
	local port before
	port=$(active)
	before=$(sovia stat value link_recover)
	ip link set "$port" down && eventually moved "$port" && eventually recovered "$before" && ip link set "$port" up
}
moved() { [ -n "$(active)" ] && [ "$(active)" != "$1" ]; }
recovered() { [ "$(sovia stat value link_recover)" -gt "$1" ]; }
port_fails_twice() { port_fails && sleep 1 && port_fails; }
over_verbs() {
	local before
	before=$(sovia stat value verbs_tx_bytes)
	socktool ask "$SOVIA_PEER" 5004 1000000 && [ $(($(sovia stat value verbs_tx_bytes) - before)) -ge 1000000 ]
}
over_tcp() {
	local before
	before=$(sovia stat value verbs_tx_bytes)
	socktool ask "$SOVIA_PEER" 5004 1000000 && equal "$(sovia stat value verbs_tx_bytes)" "$before"
}
# What is remembered of a lack of devices lasts ten seconds.
comes() { rdma link add "$SOVIA_RDMA" type "$SOVIA_DEVICE" netdev "$SOVIA_NETDEV" && sleep 1; }
anew() { modprobe -r sovia && modprobe sovia fallback_wait=200; }

limit 120
check 'a server on the peer'			start_server
check 'no device'				delete_rdma
check '... connections are TCP'			over_tcp
check 'a device comes'				comes
check '... connections go over it'		over_verbs
check 'a bond with a port in reserve'		make_bond "m1 m2" mode active-backup fail_over_mac active
check '... that has the device'			on_bond
check 'connections go over it'			over_verbs
check 'the bond moves to its other port'	transferring port_fails
check '... and twice'				transferring port_fails_twice
check 'connections go over it'			over_verbs
check 'no bond'					end_bond
check 'a bond that uses all ports'		make_bond m1 mode balance-xor
check '... whose port has the device'		on_port
check 'the module is reloaded'			anew
check 'connections are TCP'			over_tcp
check '... and so they stay'			over_tcp
check 'the module can be unloaded'		eval 'stop_server && eventually modprobe -r sovia'
finish
