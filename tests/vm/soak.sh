#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# soak.sh [SECONDS [SEED]]: all kinds of load at once, for any time, over a wire and within
# both hosts (lib/soak): all data arrives, connections end as planned, and nothing leaks.
#
# vm: --pair --timeout 1500 --append kunit.enable=0
set -u -o pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

DURATION=${1:-120}
SEED=${2:-$RANDOM}
# Long enough that all caches have reached their size.
WARM=40
# Extra time for a slow host.
PATIENCE=600

# Output is shown while the load runs.
exec {SHOWN}>&1
show() { # NAME
	local line
	while read -r line; do
		echo "$1: $line"
		echo "# $1: $line" >&"$SHOWN"
	done
}

servers_start() {
	setsid soak serve /tmp/serving >/tmp/served 2>&1 &
	there 'setsid soak serve /tmp/serving >/tmp/served 2>&1 &'
	eventually test -e /tmp/serving && there eventually test -e /tmp/serving
}

# Processes forked for connections have to exit by themselves.
servers_stop() {
	rm /tmp/serving && there rm /tmp/serving || return
	local tries
	for ((tries = 0; tries < PATIENCE / 2; tries++)); do
		served && there served && break
		sleep 1
	done
	show "$SOVIA_NODE" </tmp/served
	there cat /tmp/served | show "$SOVIA_PEER"
	served && there served
}
served() { grep -q '^served .* 0 wrong:' /tmp/served; }

load() { # SEED SECONDS
	local far status=0
	there soak load "$1" "$2" "$SOVIA_NODE" 127.0.0.1 ::1 2>&1 | show "$SOVIA_PEER" &
	far=$!
	soak load "$1" "$2" "$SOVIA_PEER" 127.0.0.1 ::1 2>&1 | show "$SOVIA_NODE" || status=1
	wait $far || status=1
	return $status
}

measure() { leakcheck measure 120 >"$WORK/$1" && there leakcheck measure 120 >"$WORK/$1-there"; }

same() { # OLD NEW
	leakcheck compare "$WORK/$1" "$WORK/$2" | show "$SOVIA_NODE"
	local status=$?
	leakcheck compare "$WORK/$1-there" "$WORK/$2-there" | show "$SOVIA_PEER" && [ $status = 0 ]
}

# Within both hosts, too, no connection of theirs was TCP's alone.
went_by_loop() { [ "$(sovia stat value loop_tx_bytes)" -gt 1000000 ]; }

lanes_died() {
	[ "$(sovia stat value link_recover)" -gt 0 ] && [ "$(there sovia stat value link_recover)" -gt 0 ]
}

# (Idle links within a host go down.)
no_complaints() {
	awk '/^bad_|^link_recover_fail|^no_room/ && $2 { print; bad = 1 } END { exit bad }' /proc/net/sovia/stat
}

# Verifies the comparison: it has to report connections that are kept open.
keep() {
	fill_buffers 127.0.0.1 100 "$WORK/kept" >"$WORK/press" 2>&1 &
	eventually test -e "$WORK/kept" || { cat "$WORK/press"; return 1; }
	leakcheck measure 0 >"$WORK/keeping"
	kill -KILL $!
	wait $!
	rm "$WORK/kept"
}
# With tests/devprofile's dma memory is mapped, of each receive the head and one page.
mapped_in_one() {
	awk '$1 == "receives" { receives = $2 } $1 == "mappings" { mappings = $2 } END { print receives, mappings; exit !receives || mappings > 2.2 * receives }' \
		/sys/kernel/debug/sovia/objects
}
too_many() { leakcheck compare "$WORK/before" "$WORK/keeping"; }

echo "# seed $SEED, $DURATION s"
limit 120
check 'servers' servers_start
limit $((WARM + PATIENCE))
check 'a warm-up' load "warm-$SEED" $WARM
[ -z "$(cat /sys/module/devprofile/parameters/dma 2>/dev/null)" ] || check 'receives are mapped in one piece' mapped_in_one
limit $PATIENCE
check 'servers stop' servers_stop
check 'measure resources' measure before
check '100 connections that are kept open' keep
deny 'leakcheck reports them' too_many
check '... as sockets' said 'GROWN ours: sockets was 0 and is 2'
check 'measure again' measure before
check 'servers again' servers_start
limit $((DURATION + PATIENCE))
check "$DURATION s of mixed load" load "$SEED" "$DURATION"
limit $PATIENCE
check 'servers stop again' servers_stop
check 'measure resources again' measure after
check 'nothing has grown' same before after
check 'lanes have died' lanes_died
check 'connections within the host were AF_SOVIA'\''s' went_by_loop
check '... there' there went_by_loop
check 'no protocol errors' no_complaints
check '... there' there no_complaints
finish
