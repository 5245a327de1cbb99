#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Calls that no program would make: random ones from many threads (tests/fuzz/calls.c), and stress-ng's, on the
# debug kernel.  Afterwards everything works as before, and nothing leaks.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 900
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh
mkdir -p $WORK
limit 300

ROOT=$(realpath ../..)
SEED=$RANDOM

# Usually built on the host already, which is faster.
build() { make -s -C "$ROOT/tests/fuzz" calls; }

# Unknown families and protocols must not start modprobe each time.
no_modprobe() { echo >/proc/sys/kernel/modprobe; }

# The calls must have had effects: sockets opened, connected, bytes sent and received.
random_calls() { # ARGUMENT...
	local line
	line=$("$ROOT/.build/fuzz/calls" "$@") || { echo "$line"; return 1; }
	echo "$line"
	[[ $line =~ connected=([0-9]+)\ accepted=([0-9]+)\ sent=([0-9]+)\ received=([0-9]+) ]] || return
	[ "${BASH_REMATCH[1]}" -ge 20 ] && [ "${BASH_REMATCH[2]}" -ge 20 ] &&
		[ "${BASH_REMATCH[3]}" -ge 1000 ] && [ "${BASH_REMATCH[4]}" -ge 1000 ]
}

fresh_connection() {
	socktool echo 5000 $WORK/echo &
	eventually test -e $WORK/echo || return
	socktool ask 127.0.0.1 5000 300000 && socktool -4 ask localhost 5000 1 || return
	rm $WORK/echo
	wait $!
}

sockets() { awk '$1 == "SOVIA" { print $3 }' /proc/net/protocols; }
no_sockets() { [ "$(sockets)" = 0 ] && [ ! -s /proc/net/sovia/sock ]; }
nothing_left() { eventually no_sockets || { cat /proc/net/sovia/sock; sockets; return 1; }; }

# The module can be unloaded only when every socket has been freed.
unloads() { eventually modprobe -r sovia && modprobe sovia "$@"; }

stress() {
	local before
	before=$(sovia stat value loop_tx_bytes)
	sovia-run stress-ng --timeout 0 "$@" && [ "$(sovia stat value loop_tx_bytes)" -gt "$before" ]
}

check 'the fuzzer builds'		build
check 'modprobe is turned off'		no_modprobe
check 'random calls'			random_calls --seed 1 --operations 500
check 'a fresh connection'		fresh_connection
check 'nothing is left'			nothing_left
check 'random calls of one thread'	random_calls --seed 2 --processes 1 --threads 1 --operations 800
check "random calls, once"		random_calls --seed $SEED --processes 3 --threads 2 --operations 300
echo "# --seed $SEED --processes 3 --threads 2 --operations 300"
check 'a fresh connection'		fresh_connection
check 'nothing is left'			nothing_left
check 'the module, with lanes within the host'	unloads loop_lane=1
check '... which are used'		equal "$(lib/loop_kind)" lane
check 'random calls over lanes'		random_calls --seed $SEED --processes 3 --threads 2 --operations 300
check 'nothing is left'			nothing_left
check 'stress-ng sock'			stress --sock 2 --sock-ops 2 --sock-domain ipv4
check 'stress-ng sock, IPv6'		stress --sock 1 --sock-ops 1 --sock-domain ipv6 --sock-opts random
check 'stress-ng sockabuse'		stress --sockabuse 1 --sockabuse-ops 2
check 'stress-ng sockmany'		stress --sockmany 1 --sockmany-ops 200
# AF_UNIX's, beside the shim
check 'stress-ng sockfd, sockpair'	sovia-run stress-ng --timeout 0 --sockfd 1 --sockfd-ops 10 --sockpair 1 --sockpair-ops 2
check 'a fresh connection'		fresh_connection
check 'nothing is left'			nothing_left
check 'the module unloads'		unloads
finish
