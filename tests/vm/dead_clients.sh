#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A client with thousands of idle connections is killed: nothing is left of them at the server, as with TCP.
#
#	dead_clients.sh [CONNECTIONS]
#
# vm: --pair --mem 1500 --timeout 1500 --append sovia.fallback=0
# lab: the memory decides how many closed sockets may wait
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

MANY=${1:-$((20000 / SLOW))}
SOME=$((MANY / 4))
LEFT=/tmp/dead_clients
PARAMETERS=/sys/module/sovia/parameters

start() {
	echo '1024 65535' >/proc/sys/net/ipv4/ip_local_port_range
	there "rm -f $LEFT; setsid idle_conns serve $LEFT 5201 5202 >/dev/null 2>&1 & eventually test -e $LEFT"
}

# What the server has: "OPEN TOTAL".
left() { there "cat $LEFT"; }
nothing_left() { left | tee "$WORK/left" | grep -q '^0 '; }

open_conns() { # NUMBER
	idle_conns open "$SOVIA_PEER" "$1" 5201 5202 >"$WORK/open" 2>&1 &
	CLIENT=$!
	until grep -q open "$WORK/open"; do
		kill -0 $CLIENT 2>/dev/null || { cat "$WORK/open"; return 1; }
		sleep 1
	done
	eventually server_has "$1"
}
server_has() { left | grep -q "^$1 "; }

kill_client() {
	kill -KILL "$CLIENT"
	wait "$CLIENT"
	true
}

# Opens connections, runs "$@", which kills the client, and expects nothing at the server.
dies() { # NUMBER COMMAND...
	local number=$1
	shift
	open_conns "$number" || return
	"$@" || return
	eventually nothing_left || { cat "$WORK/left"; return 1; }
	echo "$number connections, at the server: $(left)"
}

# Kills the client while a parameter has that value, which some of its sockets meet: they are reset.
kill_client_with() { # PARAMETER VALUE
	local before resets
	before=$(cat "$PARAMETERS/$1") resets=$(sovia stat value no_room)
	echo "$2" >"$PARAMETERS/$1"
	kill_client
	echo "$before" >"$PARAMETERS/$1"
	resets=$(($(sovia stat value no_room) - resets))
	echo "$resets reset at $1"
	[ $resets -gt 0 ]
}
few_orphans() { kill_client_with max_orphans 10; }

# The lane is lost, and recovers, while the sockets are closed.
lane_dies() {
	local before status
	before=$(sovia stat value link_recover)
	{ for _ in 1 2 3; do sleep 0.3; echo all >/sys/kernel/debug/sovia/break; done; } 2>/dev/null &
	few_orphans
	status=$?
	wait
	[ $status = 0 ] || return 1
	[ "$(sovia stat value link_recover)" -gt "$before" ] || { echo 'no lane has died'; return 1; }
}

# No message of a socket may be queued any more, and each closed one counts as an orphan too many.
no_memory() { kill_client_with mem 1024,1024; }

stop() { there "rm -f $LEFT; sleep 1; modprobe -r sovia" && modprobe -r sovia; }

limit 400
check 'a server' start
check "$MANY connections, and their client dies, with 10 orphans at most" dies "$MANY" few_orphans
check "$SOME, and the lane dies, too" dies "$SOME" lane_dies
check "$SOME, without memory" dies "$SOME" no_memory
check 'no socket is left on either node' stop
finish
