#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first socket loads the module, by its own family or by
# protocol 254 of IPv4 and IPv6.
#
# vm: --timeout 300
set -u
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"

loaded() { grep -q '^sovia ' /proc/modules; }

# Opens a stream socket of family $1, protocol $2, as user $3.
opens() {
	loaded && { rmmod sovia || return; }
	setpriv --reuid "$3" --clear-groups python3 -c '
import socket, sys
socket.socket(int(sys.argv[1]), socket.SOCK_STREAM, int(sys.argv[2]))' "$1" "$2" || return
	loaded
}

# As distributions do that blacklist rare protocols; sovia-run loads the module nevertheless.
blacklisted() { # USER
	echo 'alias net-pf-19 off' >/etc/modprobe.d/rare.conf
	loaded && { rmmod sovia || return; }
	! opens 19 0 "$1" 2>/dev/null || { echo 'the family loads it'; return 1; }
	equal "$(setpriv --reuid "$1" --clear-groups sovia-run python3 -c '
import socket
print(socket.socket(socket.AF_INET, socket.SOCK_STREAM).getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))')" 254
}

# The packages' configuration of modprobe undoes it.
undone() { # USER
	cp userland/modprobe.d/sovia.conf /etc/modprobe.d/ && opens 19 0 "$1"
}

aliases() { modinfo -F alias sovia | sort | tr '\n' ' '; }

# Asks for the module's generic netlink family, as user $1.
finds_family() {
	loaded && { rmmod sovia || return; }
	setpriv --reuid "$1" --clear-groups sovia rule show >/dev/null && loaded
}

check 'the aliases are what the kernel requests' equal "$(aliases)" \
	'net-pf-10-proto-254-type-1 net-pf-16-proto-16-family-sovia net-pf-19 net-pf-2-proto-254-type-1 '
for user in 0 65534; do
	check "user $user: generic netlink" finds_family $user
	check "user $user: family 19" opens 19 0 $user
	check "user $user: protocol 254 of IPv4" opens 2 254 $user
	check "user $user: protocol 254 of IPv6" opens 10 254 $user
done
for user in 0 65534; do
	check "user $user: sovia-run, where family 19 is blacklisted" blacklisted $user
done
for user in 0 65534; do
	check "user $user: family 19, where that is undone" undone $user
done
deny 'protocol 253 does not open a socket' opens 2 253 0
finish
