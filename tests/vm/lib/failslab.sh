# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Allocation failures, on a debug kernel.

DEBUG=/sys/kernel/debug

# failslab and fail_page_alloc: all kinds of allocations, without messages.
failures() {
	local fault
	for fault in failslab fail_page_alloc; do
		echo N >$DEBUG/$fault/ignore-gfp-wait || return
	done
	for fault in failslab fail_page_alloc fail_usercopy; do
		echo 0 >$DEBUG/$fault/verbose || return
	done
	echo 0 >$DEBUG/fail_page_alloc/min-order
}

# More than will be used up.
TIMES=1000000000

# Runs COMMAND while one in EVERY non-blocking allocations of the system fails; some have to.
while_scarce() { # EVERY COMMAND...
	local fault status
	for fault in failslab fail_page_alloc; do
		echo Y >$DEBUG/$fault/ignore-gfp-wait
		echo $TIMES >$DEBUG/$fault/times
		echo "$1" >$DEBUG/$fault/interval
		echo 100 >$DEBUG/$fault/probability
	done
	"${@:2}"
	status=$?
	for fault in failslab fail_page_alloc; do
		echo 0 >$DEBUG/$fault/probability
	done
	echo "slabs that were refused: $((TIMES - $(<$DEBUG/failslab/times)))"
	[ "$(<$DEBUG/failslab/times)" -lt $TIMES ] && return $status
}
