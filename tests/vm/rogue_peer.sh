#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A peer made of raw verbs violates every rule (tests/rogue_peer), beside well-behaved connections: its messages end
# what the protocol says they end, nothing else, and no resources leak.
#
#     rogue_peer.sh [SECONDS]      for SECONDS at random, with a new seed each time
#
# A busy machine must not look like a silent peer, so the timeouts are longer than usual.
#
# vm: --wire --smp 2 --kernel debug --leaks --timeout 1200 --append "kunit.enable=0 sovia.fallback=0 sovia.ack_timeout=20 sovia.probe_interval=10"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/rogue_peer.sh source-path=SCRIPTDIR
. lib/rogue_peer.sh

RANDOM_SECONDS=${1:-0}
TRACING=/sys/kernel/tracing

# --- well-behaved connections ---

start_good() {
	setsid socktool echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" || return
	touch "$WORK/go"
	good node-b &
	good 127.0.0.1 &
}

# One transfer after the other; all data sent comes back.
good() { # HOST
	while [ -e "$WORK/go" ]; do
		if socktool ask "$1" 5004 100000 >>"$WORK/complaints" 2>&1; then
			echo >>"$WORK/good.$1"
		else
			echo "to $1" >>"$WORK/complaints"
		fi
	done
}

# Since the last call, some transfers have completed, and none has failed.
good_go_on() {
	local host seen
	for host in node-b 127.0.0.1; do
		seen=$(wc -l 2>/dev/null <"$WORK/good.$host" || echo 0)
		eventually more_than "$seen" "$host" || { echo "none to $host"; return 1; }
	done
	[ ! -s "$WORK/complaints" ] || { cat "$WORK/complaints"; return 1; }
}

more_than() { [ "$(wc -l 2>/dev/null <"$WORK/good.$2" || echo 0)" -gt "$1" ]; }

# A lane that dies is replaced, and the log is rate-limited: states of links are traced.
watch_links() { echo 1 >$TRACING/events/sovia/sovia_link_state/enable; }
broken() { grep -E "sovia_link_state: link=[0-9]+ [^ ]+ ::ffff:$1 .* UP -> (RECOVERING|DOWN)" $TRACING/trace; }
# One over loop ends when it is idle, between two transfers of a slow guest.
good_lanes() { ! broken '(10\.77\.0\.2|127\.0\.0\.1)' | grep -v ' loop .* conns=0 UP -> DOWN$'; }

stop_good() {
	rm "$WORK/go" "$WORK/echo"
	eventually no_socktool
}

no_socktool() { ! pgrep -x socktool >/dev/null; }

# --- counters and leaks ---

counted() {
	local name
	# KUnit has incremented counters as well
	for name in bad_message bad_sequence bad_ack bad_window bad_state bad_hello no_socket conn_refused reset_tx reset_rx \
		link_recover link_recover_fail; do
		[ "$(sovia stat value $name)" -gt "$(sed -n "s/^$name //p" "$WORK/before")" ] || { echo "no $name"; return 1; }
	done
}

# The module does not listen for links then: the rogue peer can.
begin_anew() { modprobe -r sovia && modprobe sovia; }

no_sockets() { eventually is_empty /proc/net/sovia/sock; }
no_rogue_links() { eventually no_rogue; }
no_rogue() { ! grep $ROGUE /proc/net/sovia/link; }
is_empty() { ! grep . "$1"; }

at_random() {
	local seed=2 end=$((SECONDS + RANDOM_SECONDS))
	while [ $SECONDS -lt $end ]; do
		timeout 300 rogue_peer $ROGUE $VICTIM random $seed 1000 || { echo "seed $seed"; return 1; }
		seed=$((seed + 1))
	done
	echo "seeds 2 to $((seed - 1))" >&3
}

exec 3>&1
cat /proc/net/sovia/stat >"$WORK/before"
limit 300
check 'an address for the rogue peer' rogue_address
check 'well-behaved connections run' start_good
check 'links are watched' watch_links
check 'invalid hellos' rogue_peer $ROGUE $VICTIM hellos
check 'hellos for existing links' rogue_peer $ROGUE $VICTIM resumes
check 'all types with invalid fields' rogue_peer $ROGUE $VICTIM fields 1 40
check 'invalid compact DATA' rogue_peer $ROGUE $VICTIM compact
check 'protocol errors on connections' rogue_peer $ROGUE $VICTIM connections
check 'unused verbs, and replies that are not read' rogue_peer $ROGUE $VICTIM verbs
check 'misuse of the connection manager' rogue_peer $ROGUE $VICTIM manager
check 'a server with wrong replies' rogue_peer $ROGUE $VICTIM server
check 'random messages' rogue_peer $ROGUE $VICTIM random 1 500
if [ "$RANDOM_SECONDS" -gt 0 ]; then
	limit $((RANDOM_SECONDS + 300))
	check "every type with every invalid field" rogue_peer $ROGUE $VICTIM fields 1 1000000
	check "random messages for $RANDOM_SECONDS s" at_random
	limit 300
fi
check 'well-behaved connections are not affected' good_go_on
check '... nor are their lanes' good_lanes
check '... as those of the rogue peer are' broken "$ROGUE"
check 'every kind of protocol error was counted' counted
check 'the rogue peer has no links' no_rogue_links
check 'well-behaved connections end' stop_good
check 'no socket is left' no_sockets
check 'the module is reloaded' begin_anew
check 'invalid replies' rogue_peer $ROGUE $VICTIM answering
check 'no socket is left' no_sockets
check 'the module can be unloaded' modprobe -r sovia
finish
