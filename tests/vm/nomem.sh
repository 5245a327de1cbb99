#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No memory: every allocation of every socket call fails once, and then some of those
# of the bottom half while data flows.  What fails says so, nothing is lost, nothing
# leaks.
#
# vm: --kernel debug --append kunit.enable=0 --leaks --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

DEBUG=/sys/kernel/debug

# Failures as they are asked for: all kinds of allocations, and no word about it.
prepare() {
	local fault
	for fault in failslab fail_page_alloc; do
		echo N >$DEBUG/$fault/ignore-gfp-wait || return
	done
	for fault in failslab fail_page_alloc fail_usercopy; do
		echo 0 >$DEBUG/$fault/verbose || return
	done
	echo 0 >$DEBUG/fail_page_alloc/min-order
}

# Of those that may not wait, one in 100 fails, wherever it is.
scarce() { # PROBABILITY
	local fault
	for fault in failslab fail_page_alloc; do
		echo Y >$DEBUG/$fault/ignore-gfp-wait
		echo -1 >$DEBUG/$fault/times
		echo "$1" >$DEBUG/$fault/probability
	done
}

transfers() { sovia-run lib/hail 127.0.0.1 127.0.0.2 2; }

while_scarce() {
	local status
	scarce 1
	transfers
	status=$?
	scarce 0
	return $status
}

no_sockets() { [ "$(wc -l </proc/net/sovia/sock)" = 0 ] || { cat /proc/net/sovia/sock; return 1; }; }

limit 200
check 'failures on demand'		prepare
for calls in 'socket socket6 bind options names poll' 'listen connect connect_first link accept' \
	'send send_some send_small send_urgent sendfile' 'recv peek splice' 'shutdown close close_unread'; do
	# shellcheck disable=SC2086 # several words
	check "without memory: $calls"	lib/failnth $calls
	echo "# ${output//$'\n'/, }"
done
check 'no socket stays'			eventually no_sockets
check 'transfers while memory is scarce'	while_scarce
check 'transfers after that'		transfers
check 'no socket stays after that'	eventually no_sockets
finish
