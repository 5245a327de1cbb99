#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Random sequences of socket calls over TCP and over AF_SOVIA, which must give the same results (tests/differ).
#
#     differ.sh [loop|verbs|both] [--seconds N | --runs N] [--seed N] ...
#
# Over verbs both ends are in this guest as well, and the bytes go over soft RoCE.
#
# vm: --smp 2 --timeout 600 --append "kunit.enable=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/roce.sh source-path=SCRIPTDIR
. lib/roce.sh

ROOT=$(realpath ../..)
DIFFER=$ROOT/.build/differ/differ
WHAT=${1:-both}
shift
# The same sequences on each machine.
[ $# -gt 0 ] || set -- --runs 250
FAMILY=$(cat /sys/module/sovia/parameters/family)

# Prints what it ran even if all passed, as a comment.
differ() { # ARGUMENT...
	local status
	"$DIFFER" --listed "$ROOT/tests/differ/listed" "$@" >"$LOG"
	status=$?
	grep '^not ok\|^ok' "$LOG" | sed 's/^/# /' >&3
	[ $status = 0 ] || cat "$LOG"
	return $status
}

build() { make -s -C "$ROOT/tests/differ"; }

# Most of the time of a sequence is spent waiting.
same() { differ --subject "$FAMILY" --jobs 5 "$@"; }
with_itself() { differ --subject tcp "$@"; }

# A planted ECONNRESET for EPIPE is found, and shrunk to at most a connection and the calls that are needed.
finds_the_planted() {
	if differ --subject tcp --seed 5 --plant --runs 500 --most 1 3>/dev/null; then
		echo 'no difference'
		return 1
	fi
	cat "$LOG"
	grep -q '^# difference' "$LOG" && grep -q 'send(s., 1, NOSIGNAL) .*EPIPE.*ECONNRESET' "$LOG" &&
		! grep -q '^#  11 ' "$LOG"
}

# See README.md. Between local addresses TCP uses the table of local routes.
quick_acknowledgments() {
	ip route change local 10.78.0.1 dev roce0 table local proto kernel scope host src 10.78.0.1 quickack 1 &&
		ip -6 route del local fd78::1 table local &&
		ip -6 route add local fd78::1 dev roce0 table local quickack 1
}

bytes_over() { sovia stat value "$1"; }
# As the tester has counted in its network namespaces.
went_by_loop() { awk '$2 == "loop_tx_bytes" { bytes = $3 } END { print bytes; exit !(bytes > 10000) }' "$LOG"; }
more_over() { [ "$(bytes_over "$1_tx_bytes")" -gt $((BYTES + 10000)) ] || { sovia stat; return 1; }; }

exec 3>&1
LOG=$(mktemp)
limit 36000
check 'the tester builds' build
check 'TCP equals TCP' with_itself --runs 100
check 'a planted difference is found, and shrunk' finds_the_planted
if [ "$WHAT" != verbs ]; then
	for family in 4 6; do
		check "the same over loop, IPv$family" same --family $family "$@"
		check '... the bytes went over loop' went_by_loop
	done
fi
if [ "$WHAT" != loop ]; then
	check 'a device' roce_device 10.78.0.1/24 fd78::1/64
	check 'TCP acknowledges at once' quick_acknowledgments
	for address in 10.78.0.1 fd78::1; do
		BYTES=$(bytes_over verbs_tx_bytes)
		check "the same over verbs, $address" same --address $address "$@"
		check '... the bytes went over verbs' more_over verbs
	done
fi
rm "$LOG"
finish
