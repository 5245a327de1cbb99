#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Random requests to generic netlink and sock_diag, on a kernel that checks its memory and locks.
#
# vm: --kernel debug --smp 2 --timeout 900 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH

limit 300
seed=${1:-$RANDOM}
fuzz() {
	local taken refused
	output=$(netlink_fuzz 90 "$seed") || { echo "seed $seed: $output"; return 1; }
	read -r taken refused < <(awk '{ taken += $1; refused += $2 } END { print taken, refused }' <<<"$output")
	echo "seed $seed: $taken replies, $refused refusals"
	# else it was no fuzzer
	[ "$taken" -gt 200 ] && [ "$refused" -gt 200 ]
}
works() {
	sovia rule flush && sovia set fallback 1 && sovia socket >/dev/null && sovia link >/dev/null && socktool talk 7100
}

modprobe sovia && modprobe sovia_diag
check 'random requests'			fuzz
echo "# $output"
check 'everything works after them'	works
check 'nothing is held'			modprobe -r sovia_diag sovia
finish
