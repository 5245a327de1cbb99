#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#     parked_many.sh [ADDRESSES]
#
# Links between any two of many addresses of one node, both ends of each on it: more than fit into its memory at a
# time.  All are set up, used, parked, and used again; prints what a link takes.
#
# vm: --mem 2048 --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/roce.sh source-path=SCRIPTDIR
. lib/roce.sh

PATH=$PWD/lib:$PATH
ADDRESSES=${1:-12}
LINKS=$((ADDRESSES * (ADDRESSES - 1) / 2))
mapfile -t MESH < <(seq -f '10.78.0.%g' "$ADDRESSES")
FIRST=8

count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/sovia/stat; }
ends() { grep -c "^$1 " /proc/net/sovia/link; }
all_are() { [ "$(ends "$1")" = $((2 * $2)) ]; }
parameter() { echo "$2" >/sys/module/sovia/parameters/"$1"; }
free_kib() { # what is not used, once nothing changes any more
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 2
	awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo
}
per_end() { # LINKS STATE
	local before
	before=$(cat /tmp/before)
	echo "$(((before - $(free_kib)) * 1024 / (2 * $1))) bytes for each end of a link, $2"
}

begin() {
	parameter probe_interval 1 && roce_device "${MESH[@]/%//16}" || return
	# what is allocated once
	idle mesh "${MESH[@]:0:2}" -- true || return
	free_kib >/tmp/before
}
few() {
	parameter idle_links 100000
	idle mesh "${MESH[@]:0:$FIRST}" -- true || return
	all_are UP $((FIRST * (FIRST - 1) / 2)) || return
	per_end $((FIRST * (FIRST - 1) / 2 - 1)) 'hardly used'
}
all() {
	parameter idle_links 64
	idle mesh "${MESH[@]}" -- true || return
	parameter idle_links 0
	eventually all_are PARKED $LINKS || { grep -v ^PARKED /proc/net/sovia/link; return 1; }
	per_end $((LINKS - 1)) parked
}
again() {
	local resumed
	resumed=$(count link_resume)
	parameter idle_links 64
	idle mesh "${MESH[@]}" -- true || return
	echo "$(($(count link_resume) - resumed)) of $((2 * LINKS)) ends resumed"
	[ $(($(count link_resume) - resumed)) -ge $((2 * LINKS)) ] && equal "$(count link_down) $(count no_link)" '0 0'
}
with_connections() {
	idle mesh "${MESH[@]}" -- sh -c 'echo 0 >/sys/module/sovia/parameters/idle_links; sleep 5; cut -d" " -f1 /proc/net/sovia/link | sort | uniq -c' &&
		equal "$(count link_down) $(count no_link)" '0 0'
}

# With what it has printed.
measured() {
	check "$@"
	echo "# ${output//$'\n'/$'\n# '}"
}

limit $((60 + LINKS))
check "an RDMA device, $ADDRESSES addresses"		begin
measured 'links that are up'				few
measured "$LINKS links, parked"				all
measured 'a message over each again'			again
check 'and again, with a connection over each that was parked'	with_connections
finish
