#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is different with iWARP: no immediate data, and the side that asked for a
# link has to be the first to send.
#
#     node-a, siw0  ------  siw0, node-b
#
# vm: --pair --device siw --timeout 300 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

is_iwarp() { equal "$(</sys/class/infiniband/"$SOVIA_RDMA"/node_type)" '4: RNIC'; }

by_verbs() {
	local before
	before=$(sovia stat value verbs_tx_bytes)
	socktool -4 ask "$SOVIA_PEER" 5004 500000 && socktool -6 ask "$SOVIA_PEER" 5006 500000 || return
	[ $(($(sovia stat value verbs_tx_bytes) - before)) -ge 1000000 ]
}

# KUnit counts some, too, where it runs.
compact() { echo "$(sovia stat value compact_tx) $(there sovia stat value compact_tx)"; }

without_imm() {
	local before
	before=$(compact)
	socktool ask "$SOVIA_PEER" 5004 500000 && equal "$(compact)" "$before"
}

no_links() { [ -z "$(cat /proc/net/sovia/link)" ] && [ -z "$(there cat /proc/net/sovia/link)" ]; }

links_end() {
	there delete_device && there add_device && eventually no_links
}

# Both nodes want a link at the same moment and the one that gets its way, which
# is us, has nothing to say when it is there.
asker_is_silent() {
	local round status
	for round in {1..4}; do
		links_end || return
		there socktool ask "$SOVIA_NODE" 5014 1000 >"$WORK/there" 2>&1 &
		socktool knock "$SOVIA_PEER" 5004
		wait $!
		status=$?
		[ $status = 0 ] || { echo "round $round:"; cat "$WORK/there"; return 1; }
	done
}

both_talk() {
	local round
	for round in {1..4}; do
		links_end || return
		there socktool ask "$SOVIA_NODE" 5014 1000 >"$WORK/there" 2>&1 &
		socktool ask "$SOVIA_PEER" 5004 1000 || { echo "round $round, here"; return 1; }
		wait $! || { echo "round $round, there:"; cat "$WORK/there"; return 1; }
	done
}

# TCP has the ports that the next requests would come from.
ports_taken() {
	local holder answer
	rm -f "$WORK/echo"
	eventually no_echo && modprobe -r sovia || return
	python3 - "$WORK/bound" <<-'EOF' &
		import socket, sys, time
		taken = [socket.create_server(("", port)) for port in (1021, 1022)]
		open(sys.argv[1], "w").close()
		time.sleep(600)
	EOF
	holder=$!
	eventually test -e "$WORK/bound" && modprobe sovia || return
	answer=$(socktool connect "$SOVIA_PEER" 5004)
	kill $holder
	equal "$answer" ok
}

# A link that ends is to be gone, not mended.
no_recovery() {
	echo 0 >/sys/module/sovia/parameters/recovery_timeout
	there 'echo 0 >/sys/module/sovia/parameters/recovery_timeout'
}

limit 180
check 'it is iWARP'				is_iwarp
check 'links are not mended'			no_recovery
check 'a server on the peer'			start_server
setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
check 'and here'				eventually test -e "$WORK/echo"
check 'bytes go over verbs'			by_verbs
check 'no message is without a header'		without_imm
check 'both ask at once'			both_talk
check 'both ask, one has nothing to say'	asker_is_silent
check 'ports that TCP has are passed over'	ports_taken
finish
