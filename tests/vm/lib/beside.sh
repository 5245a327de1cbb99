# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Runs tests/fuzz/beside.c.

ROOT=$(realpath ../..)
SEED=$RANDOM

# Usually built on the host already, which is faster.
build() { make -s -C "$ROOT/tests/fuzz" calls; }

# Both kinds of connections must have been made.
beside() { # SECONDS [ARGUMENT...]
	local line seconds=$1
	shift
	line=$("$ROOT/.build/fuzz/beside" --seconds "$seconds" --seed "$SEED" "$@") || { echo "$line"; return 1; }
	line=${line##*$'\n'}
	echo "--seed $SEED: $line"
	[[ $line =~ rounds=([0-9]+)\ connected=([0-9]+)\ tcp=([0-9]+) ]] || return
	[ "${BASH_REMATCH[1]}" -gt $((seconds / 4)) ] && [ "${BASH_REMATCH[2]}" -gt 0 ] && [ "${BASH_REMATCH[3]}" -gt 0 ]
}

sockets() { awk '$1 == "SOVIA" { print $3 }' /proc/net/protocols; }
no_sockets() { [ "$(sockets)" = 0 ] && [ ! -s /proc/net/sovia/sock ]; }
nothing_left() { eventually no_sockets || { cat /proc/net/sovia/sock; sockets; return 1; }; }
