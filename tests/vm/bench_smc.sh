#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# SMC-R, one of the transports compared with: scripts/guest/smc.py sets it up
# on soft RoCE, and reports correctly what a connection goes over.
#
# vm: --pair --kernel 6.12 --no-module --timeout 300
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh
PATH=$(realpath ../../scripts/guest):$PATH
SIZE=1000000

# AF_SMC numbers its protocols as AF_SOVIA does.
smc() { SOVIA_FAMILY=43 socktool "$@"; }

sent_packets() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

# The mode of an open connection to node-b, as smc.py reports it on both nodes.
modes() { # HERE THERE
	local status
	smc watch node-b 5004 "$WORK/held" &
	eventually test -e "$WORK/held" || return
	smc.py sockets | tee "$WORK/here"
	there "PATH=$PATH smc.py sockets" | tee "$WORK/there"
	equal "$(awk '$2 ~ /:5004$/ { print $3 }' "$WORK/here")" "$1" &&
		equal "$(awk '$1 ~ /:5004$/ && $2 !~ /:0$/ { print $3 }' "$WORK/there")" "$2"
	status=$?
	rm "$WORK/held"
	wait $! || status=1
	return $status
}

# The bytes come back, and both ways in RDMA packets of 1 KB or less.
over_rdma() {
	local before
	before=$(sent_packets)
	smc ask node-b 5004 $SIZE || return
	echo "packets: $before, $(sent_packets)"
	[ $(($(sent_packets) - before)) -ge $((SIZE / 1024)) ]
}

over_tcp() {
	local before
	before=$(sent_packets)
	smc ask node-b 5004 $SIZE && equal "$(sent_packets)" "$before"
}

modprobe -a smc smc_diag
there 'modprobe -a smc smc_diag; SOVIA_FAMILY=43 setsid socktool echo 5004 /tmp/echo >/dev/null 2>&1 &'
check 'a server'				eventually there test -e /tmp/echo
check 'without a common EID it is TCP'		modes TCP TCP
check '... and so are the bytes'		over_tcp
check 'an EID'					smc.py ueid add OURS
deny '... cannot be added twice'		smc.py ueid add OURS
check '... there'				there "PATH=$PATH smc.py ueid add OURS"
check 'it is SMC-R'				modes SMCR SMCR
check '... and so are the bytes'		over_rdma
check 'a PNET ID'				smc.py pnet add NET1 eth0 rxe0 1
deny '... cannot be added twice'		smc.py pnet add NET1 eth0 rxe0 1
check '... there'				there "PATH=$PATH smc.py pnet add NET1 eth0 rxe0 1"
check 'it is still SMC-R'			modes SMCR SMCR
there rm /tmp/echo
finish
