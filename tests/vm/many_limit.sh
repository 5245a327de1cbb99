#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How many connections a tenant may have (Documentation/limits.rst, Memory of messages): as many for each MiB of the machine as is
# promised there; they live on at the limit and beyond it, and the next tenant gets its own.
#
# vm: --mem 1024 --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
WORK=$(mktemp -d)
chmod 1777 "$WORK"
MEM=/sys/module/sovia/parameters/mem

# Pages of the first limit and of the second one, as a machine of MACHINE MiB has them.
MACHINE=256
pages() { echo "$1,$(($1 * 3 / 2))"; }
FIRST=$((MACHINE * 256 / 16))
# Sockets for each MiB of the machine; each connection here has two.
PROMISED=27

as_user() { setpriv --reuid "$((2000 + $1))" --regid "$((2000 + $1))" --clear-groups "${@:2}"; } # N COMMAND...
serve() { # N
	as_user "$1" setsid idle_conns serve "$WORK/$1" $((5500 + $1)) >/dev/null 2>&1 &
	eventually test -e "$WORK/$1"
}
start() {
	pages $FIRST >$MEM && echo '1024 65535' >/proc/sys/net/ipv4/ip_local_port_range && serve 1 && serve 2
}
get() { awk 'NR == 1 { print $'"$1"' }' "$WORK/out"; }
enough() {
	echo "$(($(get 1) * 2)) sockets, $((MACHINE * PROMISED)) are promised"
	[ $(($(get 1) * 2)) -ge $((MACHINE * PROMISED)) ]
}
# Of its own socket, or as its listener does not answer.
refused() { [[ $(get 2) = @(ENOBUFS|ETIMEDOUT) ]] && [ "$(sovia stat value no_room)" -gt 0 ]; }
all_answer() {
	local before
	before=$(grep -c answered "$WORK/out")
	echo ask >&3
	eventually more_than "$before"
}
more_than() { [ "$(grep -c answered "$WORK/out")" -gt "$1" ]; }
next_tenant() { as_user 2 idle_conns ask 127.0.0.1 "$1" 5502; } # CONNECTIONS
none_left() { equal "$(cut -d' ' -f1 "$WORK/1")" 0; }
no_memory_held() { [ "$(awk '$1 == "memory" { print $2 }' /sys/kernel/debug/sovia/limits)" = 0 ]; }
stop() { rm "$WORK/1" "$WORK/2" && eventually no_memory_held && eventually rmmod sovia; }

limit 300
ulimit -n 200000
check 'servers of two users' start
mkfifo "$WORK/in"
as_user 1 idle_conns fill 127.0.0.1 5501 <"$WORK/in" >"$WORK/out" 2>&1 &
exec 3>"$WORK/in"
check 'a tenant takes what it gets' eventually test -s "$WORK/out"
check 'that is what is promised' enough
check '... and then an error' refused
check 'at the limit each connection answers' all_answer
check 'the next tenant gets some' next_tenant $((FIRST / 8))
pages $((FIRST / 2)) >$MEM
check 'at twice the limit each answers' all_answer
check '... and the next tenant still gets some' next_tenant $((FIRST / 16))
exec 3>&-
check 'they end' eventually none_left
check 'nothing is held, and the module can be unloaded' stop
finish
