#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A hundred thousand connections within one host: a byte on each comes back, few messages ask for windows that are not used, and
# nothing is left.
#
#	many_loop.sh [CONNECTIONS]
#
# vm: --smp 2 --mem 8192 --timeout 1400 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/windows.sh source-path=SCRIPTDIR
. lib/windows.sh
PATH=$PWD/lib:$PATH
SERVED=$(mktemp -u)
MANY=${1:-$((100000 / SLOW))}
PORTS=(5600 5601 5602 5603)

start() {
	echo '1024 65535' >/proc/sys/net/ipv4/ip_local_port_range
	setsid idle_conns serve "$SERVED" "${PORTS[@]}" >/dev/null 2>&1 &
	eventually test -e "$SERVED"
}
none_left() { equal "$(cut -d' ' -f1 "$SERVED")" 0; }
stop() { rm "$SERVED" && eventually rmmod sovia; }

limit 900
ulimit -n 200000
check 'a server' start
check "$MANY connections: each answers, few messages about windows" says_few $((MANY / 10)) told idle_conns ask 127.0.0.1 "$MANY" "${PORTS[@]}"
check 'none is left' eventually none_left
check 'the module can be unloaded' stop
finish
