# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For scripts that have sourced tap.sh from their own directory.  They set WORK, a directory, and FLOW, how
# `socktool flow HOST PORT` is called.

# Runs "$@" during a transfer both ways, all of which has to arrive, once and in order.
transferring() {
	local flow status
	"${FLOW[@]}" "$WORK/flow" >"$WORK/answer" 2>&1 &
	flow=$!
	eventually test -e "$WORK/flow" || { cat "$WORK/answer"; return 1; }
	"$@"
	status=$?
	rm "$WORK/flow"
	wait $flow
	cat "$WORK/answer"
	grep -q ' bytes, the same$' "$WORK/answer" && [ $status = 0 ]
}
