#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A connect() that siw blocks in the kernel: the peer has introduced itself, but a firewall drops
# what comes then.  Whatever does not need that peer goes on, above all the end of other network
# namespaces.
#
# vm: --pair --device siw --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
# lab: it needs an address that nobody has
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

NODE=$(address 4 "$SOVIA_NODE")
SILENT=${NODE%.*}.77

count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/sovia/stat; }

# TCP's connect() to the service port (299) of the silent address, state SYN_SENT.
blocked() { awk '$3 ~ /:012B$/ && $4 == "02" { found = 1 } END { exit !found }' /proc/net/tcp; }

silent_service() {
	there "ip addr add $SILENT/32 dev \"\$SOVIA_NETDEV\" && tc qdisc add dev \"\$SOVIA_NETDEV\" clsact &&
		tc filter add dev \"\$SOVIA_NETDEV\" ingress protocol ip u32 match ip dst $SILENT/32 match ip protocol 6 0xff \
			match ip dport 299 0xffff action drop"
}

connect_to_silence() {
	setsid socktool connect "$SILENT" 5004 >/dev/null 2>&1 &
	eventually blocked
}

# The set-up has been given up, but siw still waits in it.
given_up() { [ "$(count link_fail)" -gt 0 ]; }
given_up_but_blocked() { eventually given_up && blocked; }

gone() { ! ip link show dev out >/dev/null 2>&1; }

# The other end of the pair is gone when the namespace is.
namespace_ends() { # COMMAND in it...
	ip netns add box && ip link add out type veth peer name in netns box || return
	ip -n box link set lo up
	[ $# = 0 ] || ip netns exec box "$@" || return
	ip netns del box && eventually gone && blocked
}

other_link() {
	[ "$(socktool connect "$SOVIA_PEER" 5004)" = ok ] && blocked
}

recovers() {
	socktool break 1 && blocked
}

modprobe veth
limit 120
check 'a server on the peer'				start_server
check 'an address whose service is silent'		silent_service
check 'a connect() to it blocks'			connect_to_silence
check 'for longer than the link waits'			given_up_but_blocked
check 'an unused namespace ends meanwhile'		namespace_ends
check 'a used one, too'					namespace_ends socktool talk 7777
check 'a link to another node is set up'		other_link
check 'and recovers'					recovers
finish
