#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Namespaces that have met many others end, again and again: their peers end in the connection thread, whose memory the
# debug kernel watches.
#
# vm: --kernel debug --smp 2 --mem 1024 --timeout 600 --append "kunit.enable=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
export PYTHONPATH=$PWD/lib
PEERS=64
ROUNDS=${1:-6}
WORK=$(mktemp -d)
OBJECTS=/sys/kernel/debug/sovia/objects

object() { awk -v name="$1" '$1 == name { print $2 }' $OBJECTS; }
# ip-netns(8) would hide debugfs.
box() { local name=$1; shift; nsenter --net="/run/netns/$name" "$@"; }
create() { ip netns add "$1" && ip -n "$1" link set lo up && box "$1" sysctl -qw net.sovia.rendezvous=2; }

# One with many addresses, and a server of all.
hub() {
	local i
	create hub && ip -n hub link add name bridge type bridge && ip -n hub link set bridge up || return
	for ((i = 1; i <= PEERS; i++)); do echo "addr add 10.9.0.$i/24 dev bridge"; done | ip -n hub -batch - || return
	box hub setsid socktool -4 echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
# A namespace is a peer of each address.
meet() { # NAME NUMBER
	create "$1" && ip link add eth0 netns "$1" type veth peer name "$1" netns hub && ip -n hub link set "$1" master bridge up &&
		ip -n "$1" addr add "10.9.0.$2/24" dev eth0 && ip -n "$1" link set eth0 up || return
	box "$1" python3 -c 'import sovia, sys
for number in range(1, int(sys.argv[1]) + 1):
    with sovia.socket() as s:
        s.connect((f"10.9.0.{number}", 5004))' $PEERS
}
ended() { equal "$(object peers) $(object anchors)" "0 0"; }
again() {
	local round
	for ((round = 1; round <= ROUNDS; round++)); do
		meet box 100 || { echo "round $round"; return 1; }
		[ "$(object peers)" -ge $((2 * PEERS)) ] || { cat $OBJECTS; return 1; }
		ip netns del box && eventually box_gone || return
	done
}
box_gone() { ! ip -n hub link show dev box >/dev/null 2>&1; }
hub_ends() { rm "$WORK/echo"; eventually no_server && ip netns del hub && eventually ended; }
no_server() { ! pgrep -f '^[^ ]*python3 .*socktool .*echo' >/dev/null; }

modprobe -a veth bridge
limit 120
check 'a namespace with many addresses'		hub
check 'others meet all of them, and end'	again
check 'it ends, and no peer is left'		hub_ends
finish
