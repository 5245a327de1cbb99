#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# A device that does not drain a queue pair: the VI is quarantined, the device not used any
# more, and nothing waits for either.
#
# vm: --pair --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
# lab: the module has to be built with fault injection, and a device is removed
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

FAULT=/sys/kernel/debug/sovia/fault

object() { awk -v name="$1" '$1 == name { print $2 }' /sys/kernel/debug/sovia/objects; }

fault_on() {
	echo Y >$FAULT/verbs && echo 1 >$FAULT/drain/times && echo 100 >$FAULT/drain/probability
}

connects() { equal "$(socktool connect "$SOVIA_PEER" 5004)" ok; }

hangs() { [ "$(object stuck_vis)" = 1 ]; }
none_hangs() { [ "$(object stuck_vis)" = 0 ]; }
said_so() { dmesg | grep -q 'does not drain'; }

# The lane breaks, and its queue pair does not drain: with the link's recovery.
broken() {
	connects && fault_on && echo all >/sys/kernel/debug/sovia/break && eventually hangs
}

refused() {
	socktool connect "$SOVIA_PEER" 5004
	grep . /proc/net/sovia/link
	[ "$(socktool connect 127.0.0.1 1)" = ECONNREFUSED ]
}

device_goes() { delete_device && none_hangs; }

unloads() { modprobe -r sovia && modprobe sovia; }

limit 120
check 'recovery gives up soon'			eval 'echo 3 >/sys/module/sovia/parameters/recovery_timeout'
check 'a server on the peer'			start_server
check 'a queue pair does not drain'		broken
check 'which the log tells'			said_so
check 'the VI still has its memory'		test "$(object verbs_vis)" -ge 1
check 'other links do not need the device'	refused
check 'the device can be removed'		device_goes
check 'and added again'				add_device
check 'it is used again'			eventually connects
check 'a second one hangs'			broken
check 'the module can be unloaded'		unloads
check 'and is as new'				eventually connects
finish
