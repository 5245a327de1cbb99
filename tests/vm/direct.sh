#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The data path in memory of tests/devprofile, on which scripts/bench --adapter counts: connections go over it and not
# over the software device below, lanes recover on it, and its devices can be removed.  Four lanes over as many completion
# queues race on two processors.
#
# vm: --wire --profile nic --smp 2 --timeout 300 --append "kunit.enable=0 sovia.fallback=0 sovia.lanes=4 sovia.cqs=4"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH

SIZE=3000000

packets() { rdma -j statistic show link | python3 -c 'import json, sys
print(sum(port["rcvd_pkts"] for port in json.load(sys.stdin)))'; }
object() { awk -v name="$1" '$1 == name { print $2 }' /sys/kernel/debug/sovia/objects; }

serve() {
	setsid socktool echo 5004 /tmp/echo >/dev/null 2>&1 &
	eventually test -e /tmp/echo
}
ask() {
	local before
	before=$(sovia stat value verbs_rx_bytes)
	socktool ask node-b 5004 $SIZE && [ $(($(sovia stat value verbs_rx_bytes) - before)) -ge $((2 * SIZE)) ]
}
# The connection manager's: the bytes would be thousands.
few_packets() { local count; count=$(packets); echo "$count packets"; [ "$count" -lt 500 ]; }
lanes_break() {
	local i
	rm -f /tmp/flow
	socktool flow node-b 5004 /tmp/flow &
	eventually test -e /tmp/flow || return
	for ((i = 0; i < 8; i++)); do
		sleep 0.5
		echo all >/sys/kernel/debug/sovia/break
	done
	rm /tmp/flow
	wait $!
}
gone() { rdma link del rxe0 && rdma link del rxe1 && equal "$(object verbs_vis) $(object stuck_vis) $(object mappings)" '0 0 0'; }

check 'a server'			serve
check 'bytes arrive, over verbs'	ask
check '... not by packets'		few_packets
check 'lanes break, and recover'	lanes_break
check '... the bytes go over verbs'	ask
check '... not by packets'		few_packets
check 'the devices are removed'		eventually gone
pkill -f 'socktool echo'
check 'the module unloads'		eventually modprobe -r sovia
finish
