#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# A device that does not drain a queue pair: the VI is quarantined, and nothing waits for it.  After eight
# of them the device is not used any more.
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

# Without an answer the device does not complete what it has sent.
unsent() {
	CUT=$CUT PYTHONPATH=$HERE/lib python3 -c 'import os, sovia, subprocess, sys
s = sovia.socket()
s.connect((sys.argv[1], 5004))
subprocess.run(os.environ["CUT"], shell=True, check=True)
s.send(bytes(1000))' "$SOVIA_PEER" || return
	fault_on && echo all >/sys/kernel/debug/sovia/break && eventually hangs
	eval "$MEND"
}
no_socket() { equal "$(object sockets)" 0 && hangs; }

break_more() { connects && fault_on && echo all >/sys/kernel/debug/sovia/break && eventually hanging "$1"; }
hanging() { equal "$(object stuck_vis)" "$1"; }
eight_broken() {
	local i
	for i in {2..8}; do
		break_more "$i" || return
		[ "$i" = 8 ] || eventually connects || return
	done
}
not_used() { [ "$(socktool connect "$SOVIA_PEER" 5004)" != ok ]; }

unloads() { eventually modprobe -r sovia && modprobe sovia; }

limit 120
check 'recovery gives up soon'			eval 'echo 3 >/sys/module/sovia/parameters/recovery_timeout'
check 'a server on the peer'			start_server
check 'a queue pair does not drain'		broken
check 'which the log tells'			said_so
check 'the VI still has its memory'		test "$(object verbs_vis)" -ge 1
check 'other links do not need the device'	refused
check 'one is not enough to leave the device'	eventually connects
check 'the device can be removed'		device_goes
check 'and added again'				add_device
check 'it is used again'			eventually connects
check 'another hangs before a message is sent'	unsent
check 'its socket does not wait for that'	eventually no_socket
check 'eight hang'				eight_broken
check 'the device is not used then'		eventually not_used
check 'the module can be unloaded'		unloads
check 'and is as new'				eventually connects
finish
