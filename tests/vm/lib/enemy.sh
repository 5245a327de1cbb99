# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For scripts in one guest with a wire that run tests/hostile against it.

PATH=$PWD/lib:$PWD/../../.build/hostile:$PATH
# shellcheck disable=SC2034 # for the script
WORK=$(mktemp -d)
VICTIM=10.77.0.1
ENEMY=10.77.0.3

# An address that only the enemy has, at the far end of the wire: see scripts/guest/main.
enemy_address() {
	ip addr add $ENEMY/32 dev eth1 &&
		ip rule add pref 12 iif lo to $ENEMY lookup 101 &&
		ip rule add pref 22 oif eth0 to $ENEMY lookup 101 &&
		ip route add $ENEMY dev eth0 src $VICTIM table 101
}
