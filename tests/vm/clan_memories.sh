#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two memories that virtual machines share, and no other way: links go on in the other one.
#
# vm: --pair --memories 2 --device none --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
# lab: virtual machines share memory on one host only
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

device() { grep -l 0x1110 /sys/bus/pci/devices/*/device | sed -n "$1s|.*/\(.*\)/device|\1|p"; } # NUMBER
without() { device "$1" >"$(memory_driver)/unbind"; }
with() { device "$1" >"$(memory_driver)/bind"; }
bound() { local i; for i in 1 2; do [ -e "$(memory_driver)/$(device $i)" ] || return; done; }

asks() { socktool -4 ask "$SOVIA_PEER" 5004 100000 && socktool -6 ask "$SOVIA_PEER" 5006 100000; }
in_memory() { asks && equal "$(awk '$1 == "UP" { print $4 }' /proc/net/sovia/link | sort -u)" clan; }
goes_on() { transferring "$@" && eventually in_memory; }
scribbled() { # SECONDS
	local before
	before=$(violations)
	echo "scribble $1 flood" >/run/host
	sleep "$1"
	nonsense_is_found "$before" flood
	eventually in_memory
}

limit 120
check 'two memories'				bound
check '... there'				there bound
check 'a server there'				start_server
check 'connections are in memory'		in_memory
check 'without the first memory'		goes_on without 1
check '... it is there again'			goes_on with 1
check 'without the second one'			goes_on without 2
check '... it is there again'			goes_on with 2
check 'without the first one there'		goes_on there without 1
check '... it is there again'			goes_on there with 1
check 'without the second one there'		goes_on there without 2
check '... it is there again'			goes_on there with 2
check 'nonsense is written into the first one'	scribbled 5
check '... in the other one all is well'	goes_on sleep 1
finish
