# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# TAP for shell scripts, most of which run in a guest.
#
#     check 'what is true' COMMAND...       ok if COMMAND succeeds, its output on failure
#     deny 'what is true' COMMAND...        ok if COMMAND fails
#     check 'what it printed' said PATTERN  of the command before, case ignored
#     skip 'what was not tried' 'why'
#     each 'where' COMMAND...             the checks of a script that prints TAP
#     finish                                last: the plan, and the exit status
#
# COMMAND may be a shell function.  It runs in a subshell, at most LIMIT seconds
# long, which `limit SECONDS` changes; timeout(1) cannot run functions.  On the lab's
# own kernels, which check all that they do, everything may take longer.

case $(uname -r) in
*-sovia-*) SLOW=4 ;;
*) SLOW=1 ;;
esac
LIMIT=$((60 * SLOW))
tests=0
failures=0
output=

limit() { LIMIT=$(($1 * SLOW)); }

# Runs "$@" with its output in $output; status 124 when time was up.
attempt() {
	local log runner watchdog status
	log=$(mktemp)
	# job control: each gets a process group that can be ended as a whole
	set -m
	("$@") >"$log" 2>&1 </dev/null &
	runner=$!
	(sleep "$LIMIT" && kill -KILL -- "-$runner") >/dev/null 2>&1 &
	watchdog=$!
	set +m
	{ wait "$runner"; } 2>/dev/null
	status=$?
	if kill -- "-$watchdog" 2>/dev/null; then
		{ wait "$watchdog"; } 2>/dev/null
	elif [ $status = 137 ]; then
		status=124
		echo "no end within $LIMIT s" >>"$log"
	fi
	output=$(cat "$log")
	rm -f "$log"
	return $status
}

# For the check after another one: what that command printed.
said() { grep -q -i -- "$1" <<<"$output"; }

# The output: its beginning, and its end, which may have the error.
shortened() {
	local lines
	lines=$(wc -l <<<"$output")
	if [ "$lines" -le 60 ]; then
		echo "$output"
	else
		head -n 30 <<<"$output"
		echo "... $((lines - 60)) lines ..."
		tail -n 30 <<<"$output"
	fi
}

report() {
	local word=$1 name=$2
	tests=$((tests + 1))
	echo "$word $tests - $name"
	if [ "$word" = ok ]; then
		return
	fi
	failures=$((failures + 1))
	[ -z "$output" ] || shortened | sed 's/^/# /'
}

# The results of a script that prints TAP.
each() { # WHERE COMMAND...
	local where=$1 line
	shift
	output=$("$@" 2>&1)
	while read -r line; do
		case $line in
		'ok '*) report ok "$where: ${line#ok * - }" ;;
		'not ok '*) report 'not ok' "$where: ${line#not ok * - }" ;;
		esac
	done <<<"$output"
	grep -q '^1\.\.' <<<"$output" || report 'not ok' "$where: all checks have run"
}

check() {
	local name=$1
	shift
	if attempt "$@"; then
		report ok "$name"
	else
		output+=$'\n'"status $? of: $*"
		report 'not ok' "$name"
	fi
}

deny() {
	local name=$1 status
	shift
	attempt "$@"
	status=$?
	output+=$'\n'"status $status of: $*"
	if [ $status != 0 ] && [ $status != 124 ]; then
		report ok "$name"
	else
		report 'not ok' "$name"
	fi
}

skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# Waits until "$@" succeeds, for half a minute and the time of one more try.
eventually() {
	local patience=$((30 * SLOW)) end
	end=$((SECONDS + patience))
	until "$@"; do
		if [ $SECONDS -ge $end ]; then
			echo "not within $patience s: $*"
			return 1
		fi
		sleep 0.2
	done
}

# equal GOT WANT
equal() {
	[ "$1" = "$2" ] && return
	echo "got '$1', want '$2'"
	return 1
}

finish() {
	echo "1..$tests"
	[ $failures = 0 ]
}
