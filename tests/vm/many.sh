#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Thousands of connections that programs hold: a byte on each comes back, and few messages ask for windows that are not used.
#
#	many.sh [CONNECTIONS]
#
# vm: --pair --mem 1536 --timeout 1400 --append "kunit.enable=0 sovia.fallback=0"
# lab: the memory decides how much they may hold
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh
# shellcheck source=lib/windows.sh source-path=SCRIPTDIR
. lib/windows.sh

MANY=${1:-$((20000 / SLOW))}
TENANTS=4
# Only the first connections of each node have more than the smallest window to give.
ASKED_MOST=4000
SERVED=/tmp/many

# As user number N: a tenant of its own.
as_user() { setpriv --reuid "$((2000 + $1))" --regid "$((2000 + $1))" --clear-groups "${@:2}"; } # N COMMAND...

serve() { # N
	there "mkdir -p -m 1777 $SERVED; ulimit -n 200000
		setsid setpriv --reuid $((2000 + $1)) --regid $((2000 + $1)) --clear-groups idle_conns serve $SERVED/$1 $((5300 + $1)) >/dev/null 2>&1 &
		eventually test -e $SERVED/$1"
}
start() {
	local n
	echo '1024 65535' >/proc/sys/net/ipv4/ip_local_port_range
	ulimit -n 200000
	for ((n = 1; n <= TENANTS; n++)); do serve $n || return; done
}

ask() { # N CONNECTIONS
	ulimit -n 200000
	as_user "$1" idle_conns ask "$SOVIA_PEER" "$2" $((5300 + $1))
}
ask_all() { # CONNECTIONS EACH
	local n pids=() status=0
	for ((n = 1; n <= TENANTS; n++)); do
		ask $n "$1" &
		pids+=($!)
	done
	for n in "${pids[@]}"; do wait "$n" || status=1; done
	return $status
}

none_left() { [ "$(there "cat $SERVED/*" | cut -d" " -f1 | sort -u)" = 0 ]; }
stop() { there "rm -rf $SERVED; sleep 1; modprobe -r sovia" && modprobe -r sovia; }

limit 600
check 'servers of four users' start
check "$((MANY * 2 / 5)) connections: each answers, few messages about windows" says_few $ASKED_MOST told_both ask 1 $((MANY * 2 / 5))
check "$MANY connections" says_few $ASKED_MOST told_both ask 1 "$MANY"
check "$MANY connections of $TENANTS users" says_few $ASKED_MOST told_both ask_all $((MANY / TENANTS))
check 'none is left' eventually none_left
check 'the module can be unloaded' stop
finish
