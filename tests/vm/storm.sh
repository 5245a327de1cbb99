#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# Hundreds of first connects at once, each of which needs a link of its own: what has no room
# now waits or comes again, and all succeed, as TCP's would.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
# lab: it adds hundreds of addresses
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# node-a is 10.77.1.1 to .COUNT, node-b the same in 10.77.2.
COUNT=220

# Small links, so that neither memory nor max_links is what limits them.
SMALL=(window=4 payload=2048 max_links=2000)

load() { # [MAX_LINKS of the peer]
	stop_server || return
	modprobe -r sovia && modprobe sovia "${SMALL[@]}" || return
	there "modprobe -r sovia && modprobe sovia ${SMALL[*]} ${1:+max_links=$1}" || return
	start_server
}

add_addresses() { # NET
	local i
	for ((i = 1; i <= COUNT; i++)); do
		echo "address add 10.77.$1.$i/16 dev $SOVIA_NETDEV noprefixroute"
	done | ip -batch - && ip route add 10.77.0.0/16 dev "$SOVIA_NETDEV"
}

# rdma_cm binds to an address when the device has a GID for it.
gids() { cat /sys/class/infiniband/"$SOVIA_RDMA"/ports/1/gids/* 2>/dev/null | grep -ci 'ffff:0a4d'; }
ready() { [ "$(gids)" -ge $COUNT ]; }

all_ok() { # TOTAL SOURCES DESTINATIONS [close]
	local got
	got=$(storm 5004 "${@:2}")
	awk '/^link_|^no_link/' /proc/net/sovia/stat
	equal "$got" "ok $1"
}

limit 200
check 'small links'				load
check 'addresses here'				add_addresses 1
check 'and there'				there "COUNT=$COUNT; add_addresses 2"
check 'which the devices know'			eventually ready
check '... there, too'				there "COUNT=$COUNT; eventually ready"
check 'many addresses connect to one'		all_ok $COUNT 10.77.1:$COUNT 10.77.2:1
check 'one connects to many'			all_ok $COUNT 10.77.1:1 10.77.2:$COUNT
check 'no links are left'			load
check 'one connects to many, without any link'	all_ok $COUNT 10.77.1:1 10.77.2:$COUNT
check 'ten connect to forty each'		all_ok 400 10.77.1:10 10.77.2:40
check 'a peer with room for 40 links'		load 40
check 'one connects to many, which close'	all_ok $COUNT 10.77.1:1 10.77.2:$COUNT close
check '... some of them had to wait for room'	there '[ "$(sovia stat value no_link)" -gt 0 ]'
check 'many addresses do'			all_ok $COUNT 10.77.1:$COUNT 10.77.2:1 close
finish
