#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Transfers over a faulty provider (kmod/debug/fault.c): never a wrong byte, a byte lost
# without an error, or a connection that hangs.
#
#     one guest:	127.0.0.1 - 127.0.0.2 over loop		node-a - node-b over verbs
#
# Connections within a host have a lane, and so a VI that can be faulty, only where loop_lane says so.
#
# vm: --wire --timeout 900 --append "kunit.enable=0 sovia.fallback=0 sovia.loop_lane=1"
set -u -o pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

FAULTS=/sys/kernel/debug/sovia/fault

arm() { # FAULT PROBABILITY INTERVAL [ERRNO]
	echo "$3" >$FAULTS/"$1"/interval
	echo -1 >$FAULTS/"$1"/times
	[ -z "${4-}" ] || echo "$4" >$FAULTS/"$1"/errno
	echo 0 >$FAULTS/"$1"/fired
	echo "$2" >$FAULTS/"$1"/probability
}

disarm() {
	local file
	for file in "$FAULTS"/*/probability; do
		echo 0 >"$file"
	done
}

fired() { # FAULT...
	local fault
	for fault; do
		[ "$(cat $FAULTS/"$fault"/fired)" -gt 0 ] || { echo "$fault has not happened"; return 1; }
	done
}

transfers() { sovia-run lib/transfer_errors "$HERE" "$THERE" "$1"; }

# After this, links are set up again.
fresh() {
	unloads && modprobe sovia && echo Y >$FAULTS/"$PROVIDER"
}

unloads() {
	local tries
	for tries in {1..100}; do
		modprobe -r sovia && return
		sleep 0.1
	done
	echo "not after $tries tries"
	return 1
}

# Transfers with the faults FAULT:PROBABILITY:INTERVAL[:ERRNO]..., each of which must fire.
with() {
	local fault answer status names=()
	for fault; do
		IFS=: read -ra fault <<<"$fault"
		arm "${fault[@]}"
		names+=("${fault[0]}")
	done
	answer=$(transfers 3)
	status=$?
	disarm
	echo "$answer"
	[ $status = 0 ] && fired "${names[@]}"
}

# Reads to the end: what writes would not survive grep -q.
all_whole() { awk '/^whole [0-9]*$/ { found = 1 } END { exit !found }'; }

# The results are the same as without faults.
harmless() { with "$@" | tee /dev/stderr | all_whole; }

# Connections end, and later ones work.
fatal() { with "$@" && transfers 1 | tee /dev/stderr | all_whole; }

# Errnos by number, as the files expect.
EIO=5 ENOMEM=12 ENODEV=19 ECONNRESET=104 ETIMEDOUT=110 ECONNREFUSED=111 EHOSTUNREACH=113

# Which of these fire depends on the lifetime of the connections.
everything() {
	arm drop 50 300 $ETIMEDOUT
	arm close 50 300 $ECONNRESET
	arm twice 50 300
	arm swap 50 300
	fatal delay:2:1 sent:2:1 starve:2:1 late:100:2
}

over() { # PROVIDER HERE THERE DISORDER
	PROVIDER=$1 HERE=$2 THERE=$3
	local disorder=$4
	check "$1: the module is reloaded"		fresh
	check "$1: messages are late"			harmless delay:5:1
	check "$1: completions are late"		harmless sent:5:1
	check "$1: post returns EAGAIN"			harmless post:20:1:11
	check "$1: no memory for receive descriptors"	harmless starve:5:1
	check "$1: a message is lost with the VI"	fatal drop:100:101:$ETIMEDOUT
	check "$1: the VI fails after a message"	fatal close:100:97:$ECONNRESET
	check "$1: the device is removed"		fatal close:100:103:$ENODEV
	check "$1: a message cannot be posted"		fatal post:100:151:$EIO
	check "$1: no memory to post a message"		fatal post:100:149:$ENOMEM
	check "$1: VIs cannot be created"		fatal close:100:97 connect:100:3:$EHOSTUNREACH
	check "$1: VIs cannot be set up"		fatal close:100:97 setup:100:3:$ECONNREFUSED
	check "$1: the hello is lost, or late"		fatal close:100:97 hello:100:3 late:100:2
	check "$1: a message is duplicated"		"$disorder" twice:100:120
	check "$1: two messages are reordered"		"$disorder" swap:100:120
	check "$1: a message is truncated"		"$disorder" short:100:120
	check "$1: everything at once"			everything
}

limit 120
over loop 127.0.0.1 127.0.0.2 fatal
# Only a lane that can lose its peer is replaced by one that retransmits.
over verbs "$(getent ahostsv4 node-a | awk 'NR == 1 { print $1 }')" "$(getent ahostsv4 node-b | awk 'NR == 1 { print $1 }')" harmless
# Only a lane that can lose its peer probes it.
check 'verbs: a message is lost silently'		fatal lose:100:120
check 'the module can be unloaded'	unloads
finish
