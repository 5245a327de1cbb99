#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# However many users have sockets, another one can open one: users of a container are for the taking.  How many are told
# apart is bounds.sh's.
#
# vm: --mem 1024 --timeout 300 --append "kunit.enable=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
export PYTHONPATH=$PWD/lib
# Their numbers have 16 bits.
USERS=65537

# As each of them in turn.
sockets_of() { # USERS
	python3 -c 'import os, resource, socket, sovia, sys
wanted = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 100, wanted + 100))
held = []
family = sovia.family()
for user in range(1000000, 1000000 + wanted):
    os.setresuid(user, user, 0)
    try:
        held.append(socket.socket(family, socket.SOCK_STREAM))
    finally:
        os.setresuid(0, 0, 0)
print(len(held))' "$1"
}
none_left() { equal "$(awk '$1 == "tenants" { print $2 }' /sys/kernel/debug/sovia/objects)" 0; }

limit 180
check "sockets of $USERS users"	sockets_of $USERS
limit 60
check 'no tenant is left'	eventually none_left
finish
