#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Transfers both ways over a wire that loses, delays, duplicates, reorders and corrupts
# packets, or is unplugged: all data arrives, once and in order, or an error is returned.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

SECONDS_EACH=8

prepare() {
	modprobe -r sovia && modprobe sovia ack_timeout=14 || return
	there 'modprobe -r sovia && modprobe sovia ack_timeout=14' || return
	start_server
}

# While both ends send through netem with these options; packets must have passed through it.
netem_on() { tc qdisc replace dev "$SOVIA_NETDEV" root netem "$@"; }
netem_off() { tc qdisc del dev "$SOVIA_NETDEV" root; }
netem() {
	local sent
	netem_on "$@" && there netem_on "$@" || return
	sleep $SECONDS_EACH
	sent=$(tc -s qdisc show dev "$SOVIA_NETDEV" | sed -n 's/.* \([0-9]*\) pkt .*/\1/p')
	netem_off && there netem_off && [ "${sent:-0}" -gt 0 ]
}

# Packets that a device has missed, or got twice or in another order, here and there.
disturbed() { cat /sys/class/infiniband/*/ports/1/hw_counters/{duplicate_request,out_of_seq_request} | paste -sd+ | bc; }
netem_disturbs() {
	local before after
	before="$(disturbed) $(there disturbed)"
	netem "$@" || return
	after="$(disturbed) $(there disturbed)"
	echo "repeated or out of order, here and there: before $before, after $after"
	[ "${after% *}" -gt "${before% *}" ] && [ "${after#* }" -gt "${before#* }" ]
}

unplugged() { # SECONDS
	plug off && sleep "$1" && plug on && sleep 2
}
unplugged_there() { # SECONDS
	there "plug off && sleep $1 && plug on" && sleep 2
}
check_plug() { if command -v plug >/dev/null; then check "$@"; else skip "$1" 'this is not the lab'; fi; }
# A cable with a loose contact.
loose_contact() {
	local i
	for i in {1..8}; do
		plug off && sleep "0.$i" && plug on && sleep "0.$((9 - i))" || return
	done
	sleep 2
}

# No message may look like a protocol error of the peer, unless a device has lost or duplicated
# one: then the lane is replaced.
no_complaints() {
	awk '/^bad_|^link_down|^link_recover_fail/ && !/^bad_sequence/ && $2 { print; bad = 1 } END { exit bad }' /proc/net/sovia/stat
}

limit 120
check 'a server'				prepare
check_cut 'one packet in a hundred is lost'		transferring netem_disturbs loss 1%
check_cut 'one in ten, in bursts'		transferring netem_disturbs loss 10% 50%
check_cut 'packets are delayed'			transferring netem delay 20ms
check_cut '... each by a different time'	transferring netem delay 5ms 5ms
check_cut 'packets are duplicated'		transferring netem_disturbs duplicate 20%
check_cut 'packets are reordered'			transferring netem_disturbs delay 3ms reorder 25% 50%
check_cut 'packets are corrupted'		transferring netem_disturbs corrupt 2%
check_cut 'the wire is slow'			transferring netem rate 2mbit
check_cut 'all of that'	transferring netem_disturbs delay 2ms 1ms loss 1% duplicate 1% reorder 10% corrupt 1%
check_plug 'unplugged for five seconds'		transferring unplugged 5
check_plug '... at the other end'			transferring unplugged_there 5
check_plug 'a loose contact'				transferring loose_contact
check 'no protocol errors'			no_complaints
check '... there'				there no_complaints
finish
