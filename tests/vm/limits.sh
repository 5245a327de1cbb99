#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Memory that peers and programs can pin is bounded (Documentation/limits.rst), in a guest with little memory.
#
# vm: --wire --mem 256 --timeout 700 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/rogue_peer.sh source-path=SCRIPTDIR
. lib/rogue_peer.sh

LIMITS=/sys/kernel/debug/sovia/limits

reload() { modprobe -r sovia && modprobe sovia "$@"; }

# Fields of fill_buffers' output.
held() { sed -n 's/^held \([0-9]*\) .*/\1/p' "$WORK/filled_by"; }
whole() { sed -n 's/.* whole \([0-9]*\) .*/\1/p' "$WORK/filled_by"; }

fill() { fill_buffers "$@" >"$WORK/filled_by" || return; cat "$WORK/filled_by"; }

nothing_held() { [ "$(awk '$1 == "memory" { print $2 }' $LIMITS)" = 0 ]; }
no_orphans() { [ "$(awk '$1 == "orphans" { print $2 }' $LIMITS)" = 0 ]; }

default_limits() {
	local short none part rest
	read -r rest rest short none < <(grep memory $LIMITS)
	cat $LIMITS
	# 1/16 and 3/32 of the memory at load time
	part=$(($(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) / $(($(getconf PAGESIZE) / 1024)) / 16))
	[ $((short - part)) -le $((part / 50)) ] && [ $((part - short)) -le $((part / 50)) ] &&
		[ "$none" = $((short + short / 2)) ]
}

# Pages: as many as the limit are held, and beyond it, a connection may have the minimum, a message at each end.
held_at_most() { # CONNECTIONS
	local least most
	read -r _ _ least most < <(grep memory $LIMITS)
	most=$((most + 10 * $1 + 400))
	if [ "$(held)" -lt "$least" ] || [ "$(held)" -gt "$most" ]; then
		echo "$least to $most"
		cat "$WORK/filled_by"
		return 1
	fi
}

# --- orphans: more than the limit ---

orphans() {
	local now dropped
	fill_buffers node-b 30 "$WORK/filled" >"$WORK/filled_by" 2>&1 &
	eventually test -e "$WORK/filled" || { cat "$WORK/filled_by"; return 1; }
	echo 10 >/sys/module/sovia/parameters/max_orphans
	# ends with 30 connections whose peers are alive and do not read
	dropped=$(sovia stat value no_room)
	kill -KILL $!
	wait $!
	now=$(awk '$1 == "orphans" { print $2 }' $LIMITS)
	dropped=$(($(sovia stat value no_room) - dropped))
	rm "$WORK/filled"
	echo "$now orphans, $dropped dropped"
	# three quarters of the limit, the rest is for other tenants; others with unsent data were reset
	[ "$now" = 8 ] && [ "$dropped" -gt 0 ]
}

# --- requests for links ---

# The connection thread gets only idle CPU time, and other processes take all CPUs.
slow_thread() {
	local thread spinners=() status
	thread=$(pgrep -x sovia-connd) && chrt -i -p 0 "$thread" || return
	for _ in 1 2; do
		timeout 240 sh -c 'while :; do :; done' & spinners+=($!)
	done
	"$@"
	status=$?
	chrt -o -p 0 "$thread"
	kill "${spinners[@]}" 2>/dev/null
	wait "${spinners[@]}"
	return $status
}

# Memory must not be the limit: the smallest window of each.
with_memory() { reload max_links=10 probe_interval=0 mem=16384,24576; }
silent() { with_memory && rogue_peer $ROGUE $VICTIM unacknowledged 1 12000; }
# Nor the listen backlog.
clogged() {
	with_memory && echo 8192 >/proc/sys/net/core/somaxconn && rogue_peer $ROGUE $VICTIM untaken 1 6000
}

# --- memory is freed with its owner ---

PARAMETERS=/sys/module/sovia/parameters

# 30 connections with full buffers, while COMMAND is run on them; then their programs exit.
filled() { # HOST COMMAND...
	local host=$1 near status
	shift
	"${WITHIN[@]}" fill_buffers "$host" 30 "$WORK/filled" >"$WORK/filled_by" 2>&1 &
	near=$!
	eventually test -e "$WORK/filled" || { cat "$WORK/filled_by"; return 1; }
	"$@"
	status=$?
	kill -KILL "$near"
	wait "$near"
	rm "$WORK/filled"
	cat $LIMITS
	return "$status"
}
WITHIN=()

lose_links() {
	local status
	echo 0 >$PARAMETERS/recovery_timeout
	echo all >/sys/kernel/debug/sovia/break
	eventually no_links
	status=$?
	echo 60 >$PARAMETERS/recovery_timeout
	return $status
}

no_links() { ! grep -w "$SOVIA_LINK" /proc/net/sovia/link; }

recover_links() {
	local before
	before=$(sovia stat value link_recover)
	echo all >/sys/kernel/debug/sovia/break
	eventually recovered_since "$before"
}

recovered_since() { [ "$(sovia stat value link_recover)" -gt "$1" ]; }

in_a_namespace() {
	ip netns add limited && ip -n limited link set dev lo up || return
	# not `ip netns exec`, which mounts another /sys
	WITHIN=(nsenter --net=/run/netns/limited)
	filled 127.0.0.1 true && ip netns del limited
}

no_oom() { ! dmesg | grep -iE 'out of memory|oom-kill|page allocation failure'; }

limit 240
check 'an address for the rogue peer' rogue_address
check 'limits by the size of the memory' default_limits

check '1000 connections without readers' fill 127.0.0.1 1000
check 'hold no more than the limit' held_at_most 1000
check 'then nothing is held' eventually nothing_held

check 'a limit of 8 MiB' reload mem=1024,2048
# One writer may use 1/16 of the first limit, which is its default maximum.
check '... and for a writer' sysctl -w net.ipv4.tcp_wmem='4096 16384 262144'
check '100 connections without readers' fill node-b 100
check 'hold no more than the limit' held_at_most 100
check 'and deliver everything' equal "$(whole)" 100
check 'a peer that fills the windows of 200' rogue_peer $ROGUE $VICTIM hoard 1 200
check 'a transfer works as before' fill node-b 1
check '... whole' equal "$(whole)" 1
check 'nothing is held' eventually nothing_held

check 'limits as before' reload
check 'too many orphans' orphans
check 'no orphan is left' eventually no_orphans

check 'connections that lose their link' filled node-b lose_links
check 'hold nothing' eventually nothing_held
check '... and leave no orphans' eventually no_orphans
check 'connections whose link recovers' filled node-b recover_links
check 'hold nothing when they end' eventually nothing_held
check '... and leave no orphans' eventually no_orphans
check 'connections of a namespace that ends' in_a_namespace
check 'hold nothing' eventually nothing_held
check '... and leave no orphans' eventually no_orphans

check '300 peers that request links' slow_thread rogue_peer $ROGUE $VICTIM crowd 1 300

check 'at most 10 links' reload max_links=10 probe_interval=0
check 'a peer gets more only in place of unused links' rogue_peer $ROGUE $VICTIM links 1 10
check 'which is counted' test "$(sovia stat value no_link)" -gt 0
# each sees the victim hold back its credits for a minute
limit 240
check 'a peer that acknowledges nothing' silent
check 'a peer that connects 6000 times, and reads no reply' clogged
limit 60
check 'the OOM killer has not run' no_oom
check 'the module can be unloaded' modprobe -r sovia
finish
