# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For scripts in one guest with a wire that run tests/rogue_peer against the module.

PATH=$PWD/lib:$PWD/../../.build/rogue_peer:$PATH
# shellcheck disable=SC2034 # for the script
WORK=$(mktemp -d)
VICTIM=10.77.0.1
ROGUE=10.77.0.3

# An address that only the rogue peer has, at the far end of the wire: see scripts/guest/main.
rogue_address() { # [ADDRESS]
	local address=${1:-$ROGUE}
	ip addr add "$address/32" dev eth1 &&
		ip rule add pref 12 iif lo to "$address" lookup 101 &&
		ip rule add pref 22 oif eth0 to "$address" lookup 101 &&
		ip route add "$address" dev eth0 src $VICTIM table 101
}
