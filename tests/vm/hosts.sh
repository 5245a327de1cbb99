#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/check --hosts: the tests of a pair on two machines that are connected by ssh only,
# over another network than the one under test.  (List of those: scripts/check --hosts A B --list.)
#
# vm: --pair --timeout 3600 --append kunit.enable=0 --qemu "-netdev socket,id=m,mcast=230.77.0.1:7777,localaddr=127.0.0.1 -device virtio-net-pci,netdev=m"
# lab: tests --hosts itself
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/foreign.sh source-path=SCRIPTDIR
. lib/foreign.sh

MANAGEMENT=10.78.0
LOG=$ROOT/.build/check-hosts

# The last number of this node's addresses.
management() {
	ip link set eth1 address 52:54:00:78:00:0"$1" && ip address add $MANAGEMENT."$1"/24 dev eth1 && ip link set eth1 up
}
both_install() { install_tools && on-peer "$(declare -f install_tools); ROOT=$ROOT install_tools"; }
networks() { management 1 && on-peer "$(declare -f management); MANAGEMENT=$MANAGEMENT management 2"; }

# Without the lab's environment.
stage() { # NAME
	local status
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
		"$ROOT/scripts/check" --hosts node-a node-b --verbose "$1"
	status=$?
	tail -n 40 "$LOG/$1.log"
	return $status
}

check 'the tools are installed'			both_install
check 'a network for management'		networks
check 'ssh reaches the other machine'		serve_ssh $MANAGEMENT.2
check 'no other way reaches it'			leave_lab
limit 900
case $* in
'--part 1/2') set -- rdma lanes e2e-1 ;;
'--part 2/2') set -- recovery keepalive app_transfer ;;
'') set -- rdma recovery lanes keepalive app_transfer e2e-1 ;;
esac
for name; do
	check "$name runs on hosts"		stage "$name"
	grep -E '^(skip|FAIL|[0-9]+ passed)' <<<"$output" | sed 's/^/# /'
done
mv $SSH/id_ed25519 $SSH/other
deny 'nothing runs where ssh may not log in'	stage lanes
check '... and it says so'			said 'denied'
finish
