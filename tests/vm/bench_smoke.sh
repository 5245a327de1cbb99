#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/bench's measuring programs work: each kind of measurement completes
# over AF_SOVIA and yields a figure.  The values of the
# figures are not checked.
#
# vm: --wire --timeout 500
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
ROOT=$(realpath ../..)
WORK=$(mktemp -d)
PP=$WORK/pp

build() { make -s -C "$ROOT/tests/bench" O="$WORK"; }

# The numbers of pp's output, each of which has to be positive.
numbers() { # JSON NAME...
	python3 - "$@" <<-'END'
	import json, sys
	found = json.loads(sys.argv[1])
	for name in sys.argv[2:]:
	    assert found[name] > 0, (name, found)
	END
}

# $1: least number of bytes over RDMA; there are connections at least.  Then names, up to --, and pp's arguments.
measure() { # BYTES NAME... -- ARGUMENT...
	local bytes=$1 names=() before opened answer
	shift
	while [ "$1" != -- ]; do
		names+=("$1")
		shift
	done
	shift
	before=$(sovia stat value verbs_tx_bytes) opened=$(sovia stat value conn_active)
	answer=$(sovia-run "$PP" -4 --seconds 0.3 "$@" node-b) && echo "$answer" && numbers "$answer" "${names[@]}" || return
	[ $(($(sovia stat value verbs_tx_bytes) - before)) -ge "$bytes" ] && [ "$(sovia stat value conn_active)" -gt "$opened" ]
}

# As scripts/bench calls it: each figure has a sample of each system.
bench() { # PATH SYSTEM...
	local path=$1 systems
	shift
	systems=$(printf ', "%s"' "$@")
	echo "{\"mode\": \"wire\", \"reps\": 1, \"minutes\": 5, \"figures\": [\"latency\", \"connect\"], \"sizes\": null, \"all\": false, \"trace\": false, \"paths\": [\"$path\"],
		\"systems\": [${systems#, }], \"tools\": \"$WORK\"}" >"$WORK/settings"
	"$ROOT/scripts/guest/bench.py" "$WORK/settings" "$WORK/result" && python3 - "$WORK/result" "$@" <<-'END'
	import json, sys
	with open(sys.argv[1]) as file:
	    result = json.load(file)
	assert not result["notes"], result["notes"]
	for figure in result["figures"]:
	    assert all(figure["samples"][system] for system in sys.argv[2:]), figure
	END
}

# Calls of RPC over AF_SOVIA within the host, whose answers are compared; and a burst.
rpc() { # SIZE
	local before status answer
	before=$(sovia stat value loop_tx_bytes)
	sovia-run "$WORK/rpc" serve 7790 &
	eventually grep -q '^LISTEN [^ ]*:7790 ' /proc/net/sovia/sock && answer=$(sovia-run "$WORK/rpc" call 127.0.0.1 7790 "$1" 100) &&
		echo "$answer" && numbers "$answer" value p99
	status=$?
	kill $!
	wait $!
	[ $status = 0 ] && [ $(($(sovia stat value loop_tx_bytes) - before)) -ge $((200 * $1)) ]
}
burst() { "$ROOT/scripts/guest/burst.py" --result "$WORK/burst" --rounds 5 && grep -q '"value"' "$WORK/burst"; }

held() {
	local before line input
	before=$(grep -c . /proc/net/sovia/sock)
	coproc HOLD { sovia-run "$PP" -4 --connections 200 hold node-b; }
	read -r -t 50 line <&"${HOLD[0]}" && equal "$line" held || return
	[ $(($(grep -c . /proc/net/sovia/sock) - before)) -ge 400 ] || return
	echo >&"${HOLD[1]}"
	read -r -t 50 line <&"${HOLD[0]}" && equal "$line" active || return
	input=${HOLD[1]}
	exec {input}>&-
	wait "$HOLD_PID"
}

# compilers are slow under emulation
limit 200
check 'the programs build'			build
limit 60
sovia-run "$PP" -4 serve >"$WORK/ready" &
server=$!
check 'the server starts'			eventually grep ready "$WORK/ready"
check 'round trips'				measure 800 count median_us p999_us -- --nodelay latency
check '... of 32 KB'				measure 6000000 count median_us -- --nodelay --size 32768 latency
check 'bandwidth'				measure 16384 mb_per_s busy_us their_busy_us -- --size 16384 bandwidth
check '... of four streams'			measure 65536 mb_per_s -- --size 16384 --connections 4 bandwidth
check '... both ways'				measure 32768 out_mb_per_s in_mb_per_s -- --size 16384 --kind duplex bandwidth
check '... to one thread'			measure 65536 out_mb_per_s -- --size 16384 --connections 4 --kind fanin bandwidth
check '... from one thread'			measure 65536 in_mb_per_s -- --size 16384 --connections 4 --kind fanout bandwidth
check 'connections'				measure 0 count per_s median_us p99_us -- --kind open connect
check '... with a byte each way'		measure 1 count per_s -- connect
check '... with 8 KB back'			measure 8192 count per_s -- --kind http connect
check '... the time of the first'		measure 0 us -- --kind first connect
check 'round trips on 200'			measure 25600 count per_s p99_us -- --size 64 --connections 200 many
check '200 connections held open'		held
check 'messages at a given rate'		measure 6400 count per_s p99_us -- --size 64 --connections 4 --rate 300 load
deny 'without a server there is no figure'	sovia-run "$PP" -4 --port 7799 latency node-b
check 'RPC without arguments'			rpc 0
check 'RPC that returns its 32 KB'		rpc 32768
check 'the last write of a burst'		burst
# it keeps the module in use, which is to be unloaded
kill $server
wait $server
limit 200
check 'all together, over the wire'		bench wire AF_SOVIA TCP rsockets
check '... and in one host'			bench host 'AF_SOVIA, loop' AF_UNIX
finish
