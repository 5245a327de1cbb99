#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A peer made of raw verbs breaks every rule (tests/rogue_peer), while connections of others go on: what it says ends what
# the protocol says it ends, and no more, and nothing of it stays.
#
#     rogue_peer.sh [SECONDS]      so long at random, with another seed each time
#
# A busy machine must not look like a silent peer, so there is more patience than usual.
#
# vm: --wire --smp 2 --kernel debug --leaks --timeout 1200 --append "kunit.enable=0 sovia.ack_timeout=20 sovia.probe_interval=10"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/rogue_peer.sh source-path=SCRIPTDIR
. lib/rogue_peer.sh

RANDOM_SECONDS=${1:-0}

# --- the others ---

start_good() {
	setsid socktool echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" || return
	touch "$WORK/go"
	good node-b &
	good 127.0.0.1 &
}

# One transfer after the other, all that is sent comes back.
good() { # HOST
	while [ -e "$WORK/go" ]; do
		if socktool ask "$1" 5004 100000 >>"$WORK/complaints" 2>&1; then
			echo >>"$WORK/good.$1"
		else
			echo "to $1" >>"$WORK/complaints"
		fi
	done
}

# Since the last time, some have come to their end, and no other way than well.
good_go_on() {
	local host seen
	for host in node-b 127.0.0.1; do
		seen=$(wc -l 2>/dev/null <"$WORK/good.$host" || echo 0)
		eventually more_than "$seen" "$host" || { echo "none to $host"; return 1; }
	done
	[ ! -s "$WORK/complaints" ] || { cat "$WORK/complaints"; return 1; }
}

more_than() { [ "$(wc -l 2>/dev/null <"$WORK/good.$2" || echo 0)" -gt "$1" ]; }

# A lane that dies is replaced, so the log alone says that it did.
good_lanes() { ! dmesg | grep -E 'link to ::ffff:(10\.77\.0\.[12]|127\.0\.0\.1):'; }

stop_good() {
	rm "$WORK/go" "$WORK/echo"
	eventually no_socktool
}

no_socktool() { ! pgrep -x socktool >/dev/null; }

# --- what is counted, and what is left ---

counted() {
	local name
	# the module's own tests have counted as well
	for name in bad_message bad_sequence bad_ack bad_window bad_state bad_hello no_socket conn_refused reset_tx reset_rx \
		link_recover link_recover_fail; do
		[ "$(sovia-stat --value $name)" -gt "$(sed -n "s/^$name //p" "$WORK/before")" ] || { echo "no $name"; return 1; }
	done
}

# So that it does not listen for links yet: whoever is to answer them does.
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
check 'others have connections' start_good
check 'hellos that make no sense' rogue_peer $ROGUE $VICTIM hellos
check 'hellos for links that are there' rogue_peer $ROGUE $VICTIM resumes
check 'types with odd fields' rogue_peer $ROGUE $VICTIM fields 1 40
check 'compact DATA that cannot be' rogue_peer $ROGUE $VICTIM compact
check 'offences on connections' rogue_peer $ROGUE $VICTIM connections
check 'verbs that nobody uses, and answers that nobody takes' rogue_peer $ROGUE $VICTIM verbs
check 'a connection manager that is abused' rogue_peer $ROGUE $VICTIM manager
check 'a server that answers wrongly' rogue_peer $ROGUE $VICTIM server
check 'at random' rogue_peer $ROGUE $VICTIM random 1 500
if [ "$RANDOM_SECONDS" -gt 0 ]; then
	limit $((RANDOM_SECONDS + 300))
	check "every type with every odd field" rogue_peer $ROGUE $VICTIM fields 1 1000000
	check "at random for $RANDOM_SECONDS s" at_random
	limit 300
fi
check 'the others notice nothing' good_go_on
check 'nor do their lanes' good_lanes
check 'every kind of offence was counted' counted
check 'the rogue peer has no links' no_rogue_links
check 'the others end' stop_good
check 'no socket is left' no_sockets
check 'the module begins anew' begin_anew
check 'answers that make no sense' rogue_peer $ROGUE $VICTIM answering
check 'no socket is left' no_sockets
check 'the module can go' modprobe -r sovia
finish
