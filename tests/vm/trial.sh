#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A fabric that passes short packets and drops long ones, in one direction: no link is UP there, whether it is new or
# recovers, and connections are TCP's.
#
# vm: --pair --timeout 900 --append "kunit.enable=0 sovia.fallback_wait=200 sovia.recovery_timeout=8"
# lab: it unloads the module
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

TCP=6 SOVIA=254
SHORTEN='nft add table inet short && nft "add chain inet short in { type filter hook input priority 0; }" &&
	nft add rule inet short in meta nfproto ipv4 udp dport 4791 meta length \> 600 counter drop &&
	nft add rule inet short in meta nfproto ipv6 udp dport 4791 meta length \> 600 counter drop'
# Of either family.
DROPPED='[ "$(nft list table inet short | grep -c "counter packets [1-9]")" = 2 ]'
LENGTHEN='nft delete table inet short'

count() { sovia stat value "$1"; }
reload() { modprobe -r sovia && modprobe sovia; }
kinds_are() { kind_is "$1" 4 && kind_is "$1" 6; }
fallback() { sysctl -qw net.sovia.fallback="$1"; }
links_are() { equal "$(grep -c "^$1 .*verbs" /proc/net/sovia/link)" "$2" || { cat /proc/net/sovia/link; return 1; }; }
no_links() { ! grep verbs /proc/net/sovia/link; }
shortened_here() { eval "$SHORTEN"; }
shortened_there() { there "$SHORTEN"; }
dropped_here() { eval "$DROPPED"; }
dropped_there() { there "$DROPPED"; }
lengthened() { eval "$LENGTHEN" 2>/dev/null || there "$LENGTHEN"; }

remembered() { # PATTERN
	equal "$(grep -c "$1" /proc/net/sovia/memory)" 2 || { cat /proc/net/sovia/memory; return 1; }
}
# After 200 ms; then it is known.
way_fails() {
	local before
	before=$(count link_up)
	fallback 1
	kinds_are $TCP && remembered . && eventually no_links && kinds_are $TCP && equal "$(count link_up)" "$before"
}
# Without TCP: two failed trials say for ten seconds that there is no way.
only_sovia() {
	local v status=0
	fallback 0
	for v in 4 6; do
		equal "$(socktool -$v connect "$SOVIA_PEER" 500$v)" ETIMEDOUT || status=1
	done
	remembered 'of=10$' || status=1
	fallback 1
	return $status
}
way_returns() {
	fallback 0
	socktool -4 ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006 && links_are UP 2
	local status=$?
	fallback 1
	kinds_are $SOVIA && return $status
}

# The lanes of links that are UP die.
recovering() {
	local v watchers='' before pid status=0
	before=$(count link_recover)
	for v in 4 6; do
		socktool -$v watch "$SOVIA_PEER" 500$v "$WORK/watch$v" >"$WORK/answer$v" 2>&1 &
		watchers+=" $!"
		eventually test -e "$WORK/watch$v" || return
	done
	links_are UP 2 && "$@" && echo all >/sys/kernel/debug/sovia/break && eventually links_are RECOVERING 2 && kinds_are $TCP &&
		eventually no_links || status=1
	rm -f "$WORK"/watch?
	for pid in $watchers; do
		wait "$pid"
	done
	equal "$(cat "$WORK"/answer?)" $'ETIMEDOUT\nETIMEDOUT' && equal "$(count link_recover)" "$before" && kinds_are $TCP &&
		return $status
}

# Mended in time: when trials of both links have failed.
recovers() { # SIDE
	local before
	before=$(count link_recover)
	"shortened_$1" && echo all >/sys/kernel/debug/sovia/break && eventually "dropped_$1" && links_are RECOVERING 2 && lengthened &&
		eventually links_are UP 2 && equal "$(($(count link_recover) - before))" 2
}

limit 120
if [ "$SOVIA_DEVICE" != rxe ]; then
	skip 'a fabric that drops long packets' 'only soft RoCE has packets that a firewall sees'
	finish
	exit
fi
check 'a server on the peer'					start_server
for side in there here; do
	check 'there are no links'				reload
	check "long packets are dropped $side"			shortened_$side
	check '... connections are TCP, and that is remembered'	way_fails
	check '... or fail without TCP'				only_sovia
	check 'they are passed again'				lengthened
	check '... and then connections are AF_SOVIA'		way_returns
	check "links do not recover while they are dropped $side"	recovering shortened_$side
	check 'they are passed again'				lengthened
	check '... and there are links again'			way_returns
	check 'links recover when that ends'			recovers $side
done
check 'all is as before'					kinds_are $SOVIA
finish
