# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Runs tests/fuzz/beside.c, tests/fuzz/ulp_race.c and tests/fuzz/accept_swap.c.

ROOT=$(realpath ../..)
FUZZ=$ROOT/.build/fuzz
SEED=$RANDOM

# Usually built on the host already, which is faster.
build() { make -s -C "$ROOT/tests/fuzz" calls; }

# Where processes hang, if the kernel tells.
blocked() { echo w >/proc/sysrq-trigger && dmesg | tail -n 50; }

# Both kinds of connections must have been made, and both ends of some called.
beside() { # SECONDS [ARGUMENT...]
	local line log seconds=$1
	shift
	# not a pipe, which a process that hangs would keep open
	log=$(mktemp)
	"$FUZZ/beside" --seconds "$seconds" --seed "$SEED" "$@" >"$log" 2>&1 || { cat "$log"; blocked; return 1; }
	line=$(tail -n 1 "$log")
	cat "$log"
	[[ $line =~ rounds=([0-9]+)\ connected=([0-9]+)\ tcp=([0-9]+)\ ends=([0-9]+) ]] || return
	[ "${BASH_REMATCH[1]}" -gt $((seconds / 4)) ] && [ "${BASH_REMATCH[2]}" -gt 0 ] && [ "${BASH_REMATCH[3]}" -gt 0 ] &&
		[ "${BASH_REMATCH[4]}" -gt 0 ]
}

# The last line of what the check before has printed.
tell() { echo "# ${output##*$'\n'}"; }

# Options that no descriptor may have were never set, and there were chances.
ulp_race() { # SECONDS
	local line
	line=$("$FUZZ/ulp_race" --seconds "$1") || { echo "$line"; return 1; }
	echo "$line"
	[[ $line =~ fallbacks=([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt 20 ]
}

# Listeners became TCP's, and both kinds have accepted.
accept_swap() { # SECONDS
	local line
	line=$("$FUZZ/accept_swap" --seconds "$1")
	echo "$line"
	[[ $line =~ swaps=([0-9]+)\ before=([0-9]+)\ after=([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt 20 ] &&
		[ "${BASH_REMATCH[2]}" -gt 0 ] && [ "${BASH_REMATCH[3]}" -gt 0 ]
}

sockets() { awk '$1 == "SOVIA" { print $3 }' /proc/net/protocols; }
no_sockets() { [ "$(sockets)" = 0 ] && [ ! -s /proc/net/sovia/sock ]; }
nothing_left() { eventually no_sockets || { cat /proc/net/sovia/sock; sockets; return 1; }; }
