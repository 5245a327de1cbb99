#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A device that fails while it is used, as tests/devprofile has it: with an event or without one, its completion queue
# alone, its port, or its firmware.  What hangs on it ends at once, it can be removed, and its links are back when it is.
#
#     scripts/vm run --pair --profile NAME -- tests/vm/fatal.sh
#
# vm: --pair --profile mlx5 --mem 1536 --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
# lab: devices are made to fail by tests/devprofile
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

INJECT=/sys/kernel/debug/devprofile/inject
# Between any two of 15 addresses: 105 links, each with both ends here.
mapfile -t MESH < <(seq -f '10.79.0.%g' 15)
LINKS=$((15 * 14 / 2))
short_connects

inject() { echo "$SOVIA_RDMA $1" >$INJECT; }
object() { awk -v name="$1" '$1 == name { print $2 }' /sys/kernel/debug/sovia/objects; }
none_hangs() { equal "$(object stuck_vis)" 0; }
ends() { grep -c "^$1 " /proc/net/sovia/link; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# The device is removed, as the drivers do it by themselves, and comes back.
anew() {
	local begin
	begin=$(milliseconds)
	delete_device || return
	echo "removed within $(($(milliseconds) - begin)) ms" >/tmp/told
	none_hangs && sleep 1 && add_device
}
fails() { # HOW
	inject "$1" && sleep 1 && anew
}
there_fails() { there "INJECT=$INJECT; fails $1"; }

# All lanes of the mesh die: nothing hangs, whatever the device refuses of a queue pair that is to end.
many_die() {
	local before
	before=$(sovia stat value link_recover)
	echo all >/sys/kernel/debug/sovia/break && eventually many_recovered "$before" && eventually all_up && none_hangs
}
many_recovered() { [ "$(sovia stat value link_recover)" -ge $(($1 + LINKS)) ]; }
# All links of the mesh lose the device that is below them, and find the next one.
many_fail() {
	local begin first=$(($(milliseconds) - MESH_BEGIN))
	inject fatal && anew || return
	begin=$(milliseconds)
	eventually all_up || { cut -d' ' -f1 /proc/net/sovia/link | sort | uniq -c; return 1; }
	echo "$LINKS links back within $(($(milliseconds) - begin)) ms, set up within $first ms, one after the other" >>/tmp/told
}
all_up() { [ "$(ends UP)" -ge $((2 * LINKS)) ]; }
mesh() {
	local address
	for address in "${MESH[@]}"; do
		ip address add "$address/16" dev "$SOVIA_NETDEV" || return
	done
	echo Y >/sys/module/sovia/parameters/hairpin && echo 1000 >/sys/module/sovia/parameters/idle_links && echo 1000 >/sys/module/sovia/parameters/max_links || return
	export -f inject delete_device delete_rdma add_device add_rdma object none_hangs equal ends milliseconds anew eventually all_up many_die many_recovered many_fail
	MESH_BEGIN=$(milliseconds)
	export INJECT LINKS SLOW MESH_BEGIN
	idle mesh "${MESH[@]}" -- bash -c 'many_die && many_fail'
}

# Lanes end, which the firmware does not answer to; then the device fails, and it is removed before the driver gives up.
silent_and_gone() {
	inject cmd_timeout && echo all >/sys/kernel/debug/sovia/break && sleep 0.5 && inject fatal && sleep 1.2 && anew
}
# An idle connection, which nothing else looks at: it would not be missed before the next message.
port_fails() {
	local found
	echo 0 >/sys/module/sovia/parameters/probe_interval
	eval "$CUT" && inject port_err && eventually recovers
	found=$?
	eval "$MEND"
	echo 5 >/sys/module/sovia/parameters/probe_interval
	[ $found = 0 ] && eventually nothing_recovers
}
recovers() { [ "$(ends RECOVERING)" -ge 1 ]; }
nothing_recovers() { equal "$(ends RECOVERING)" 0; }
# It was for a moment, or another link of it is there.
port_blinks() {
	local before
	before=$(sovia stat value link_recover)
	# longer than a probe may take
	inject port_err && sleep 1 && inject port_err && sleep 7 && equal "$(sovia stat value link_recover)" "$before"
}

# With what it has printed.
measured() {
	check "$@"
	sed 's/^/# /' /tmp/told
}

limit 300
check 'a server on the peer'				start_server
measured 'a transfer survives a device that fails'	transferring fails fatal
measured 'one that says nothing'			transferring fails fatal-silent
check 'one of the peer'					transferring there_fails fatal
measured 'a completion queue that fails'		transferring fails cq_err
check 'a port that is down is noticed'			watched alive port_fails --
check 'one that is up again ends nothing'		transferring port_blinks
check 'a transfer survives firmware without an answer'	transferring eval 'inject cmd_timeout && socktool break 5'
measured 'it fails, and is removed meanwhile'		transferring silent_and_gone
measured "$LINKS lanes die, and then their device"	mesh
check 'no queue pair hangs'				none_hangs
check 'the module can be unloaded'			eval 'stop_server && eventually modprobe -r sovia'
finish
