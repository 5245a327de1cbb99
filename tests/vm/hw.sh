#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first hour of a card: connections of both families go over it, their bytes arrive whatever happens to lanes and
# to the device, and the module unloads.  Of a device that can carry none (no queue pair of a kernel user's, or too few
# pieces in a message) nothing is seen: connections are TCP's at once, as if there were none.
#
#     scripts/vm run --pair --profile NAME -- tests/vm/hw.sh        in the lab, tests/devprofile/profile.c has the names
#
# vm: --pair --timeout 600 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# Of each end.
LANES=50
short_connects

# The memory of messages that just do not fit half a page of their size, for each byte: what a window is counted with
# (kmod/sock/mem.c), and no more.
# With a single byte between any two of them it is more, and since 6.3 an sk_buff's smallest head is larger.
memory_is_promised() {
	local sizes taken status=0 mixed=3
	[[ $(uname -r) != 6.1.* ]] || mixed=2.75
	for sizes in 2000 2049 4097 8193 1,2049 1,4097; do
		taken=$(socktool hoard "$SOVIA_PEER" 5004 $sizes) || return
		echo "$sizes: $taken"
		awk -v taken="$taken" -v most="$([[ $sizes == *,* ]] && echo $mixed || echo 2.5)" 'BEGIN { exit taken < 1 || taken > most }' || status=1
	done
	return $status
}

switch() { sysctl -qw "net.sovia.fallback=$1" && there sysctl -qw "net.sovia.fallback=$1"; }

# At least so many bytes of a connection to the peer, and back, have gone over the device.
over_verbs() { # FAMILY
	local before size=1000000
	before=$(($(sovia stat value verbs_tx_bytes) + $(sovia stat value verbs_rx_bytes)))
	socktool "-$1" ask "$SOVIA_PEER" "500$1" $size || return
	[ $(($(sovia stat value verbs_tx_bytes) + $(sovia stat value verbs_rx_bytes) - before)) -ge $((2 * size)) ] || { sovia stat; return 1; }
}

works() { socktool -4 ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006; }
both_break() { socktool break $LANES && there socktool break $LANES; }
device_anew() { delete_device && sleep 1 && add_device; }
no_complaints() { awk '/^bad_|^link_down|^link_recover_fail|^protocol_/ && $2 { print; bad = 1 } END { exit bad }' /proc/net/sovia/stat; }
none_hangs() { ! awk '$1 == "stuck_vis" && $2 { print; found = 1 } END { exit !found }' /sys/kernel/debug/sovia/objects; }
unloads() { stop_server && eventually modprobe -r sovia && there eventually modprobe -r sovia; }

# Segments to the port where hosts ask each other, from here and from there.
count_asking() {
	nft add table inet asking && nft 'add chain inet asking out { type filter hook output priority 0; }' &&
		nft add rule inet asking out tcp dport 298 counter
}
asked() { nft list table inet asking | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'; }
nobody_asks() { equal "$(asked)" 0 && equal "$(there asked)" 0; }
kind_is_both() { kind_is "$1" 4 && kind_is "$1" 6; }

limit 240
case ${SOVIA_PROFILES-} in
erdma | mana612 | mana72 | usnic | representor)
	check 'segments to the asking port are counted'	count_asking
	check '... there'				there count_asking
	check 'a server on the peer'			start_server
	check 'connections are TCP'			kind_is_both 6
	check 'nobody has asked'			nobody_asks
	deny 'the doctor finds no device that is used'	sovia doctor "$SOVIA_PEER"
	check '... and says so'				said "$SOVIA_RDMA: not used, it has no queue pairs for links"
	check_device 'the device is removed and back'	device_anew
	check 'connections are TCP after that'		kind_is_both 6
	check 'nobody has asked then'			nobody_asks
	;;
*)
	check 'no TCP'					switch 0
	check 'a server on the peer'			start_server
	check 'the doctor finds nothing wrong'		sovia doctor "$SOVIA_PEER"
	check 'IPv4 goes over the device'		over_verbs 4
	check 'IPv6 does'				over_verbs 6
	if [ "$SOVIA_DEVICE" = rxe ] && [[ $(uname -r) == 7.* ]]; then
		skip "bytes arrive while $LANES lanes of each end die" 'soft RoCE of Linux 7 hangs then, see known-issues.rst'
	else
		check "bytes arrive while $LANES lanes of each end die"	transferring both_break
	fi
	check 'messages take the memory of their window'	memory_is_promised
	check 'no protocol errors'			no_complaints
	check '... there'				there no_complaints
	check 'no queue pair hangs'			none_hangs
	check '... there'				there none_hangs
	check_device 'the device is removed and back'	transferring device_anew
	check_device 'that of the peer is'		transferring there device_anew
	check 'connections work after that'		eventually works
	check 'IPv4 goes over the device again'		over_verbs 4
	check 'IPv6 does, too'				over_verbs 6
	;;
esac
check 'the module can be unloaded'			unloads
finish
