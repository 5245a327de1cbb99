# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Messages about windows, for scripts that have sourced tap.sh.

# PRESSURE, RETURN and WAKEUP that this node has sent.
told() {
	local name sum=0
	for name in pressure_tx return_tx wakeup_tx; do sum=$((sum + $(sovia stat value $name))); done
	echo $sum
}
# And the other node of a pair.
told_both() { echo $(($(told) + $(there told))); }

# Runs a command, which says few of them.
says_few() { # MOST HOW-TO-COUNT COMMAND...
	local most=$1 count=$2 before said
	before=$($count)
	"${@:3}" || return
	said=$(($($count) - before))
	echo "$said PRESSURE, RETURN and WAKEUP"
	[ $said -le "$most" ]
}
