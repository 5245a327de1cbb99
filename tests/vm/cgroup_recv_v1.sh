#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Control groups of version 1: data received from another node is charged to the group of the program that
# accepted the socket; what exceeds its limit is taken nevertheless, and counted.
#
# vm: --pair --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

ROOT=$WORK/memory
GROUP=$ROOT/group
LIMIT_TCP=$((256 << 10))
# More than a window, so that senders wait.
SIZE=$((300 << 10))

prepare() {
	mkdir "$ROOT" && mount -t cgroup -o memory cgroup "$ROOT" && mkdir "$GROUP" &&
		echo $LIMIT_TCP >"$GROUP/memory.kmem.tcp.limit_in_bytes"
}

charged() { cat "$GROUP/memory.kmem.tcp.usage_in_bytes"; }
is_paid() { equal "$(charged)" "$(held)" && [ "$(held)" -ge "$1" ]; }

accepted() {
	say move "$GROUP" && say listen 7000 && feed_us 2 && eventually queued 100000 && say accept 2 && eventually is_paid 100000
}

# Of two connections, full windows.
opened() { say some 60000 && eventually queued 200000; }

unpaid() { equal "$(charged)" 0; }

beyond() {
	local resets before
	resets=$(count reset_tx) before=$(count uncharged)
	feed_us 8 && say accept 8 && eventually queued 400000 || return
	echo "$(charged) of $(held)"
	[ "$(charged)" -le $LIMIT_TCP ] && [ "$(held)" -gt $LIMIT_TCP ] && [ "$(count uncharged)" -gt "$before" ] &&
		equal "$(count reset_tx)" "$resets"
}

# The last charges were refused, so the group is short of memory: windows do not open.
narrowed() {
	echo 64K >"$GROUP/memory.kmem.tcp.limit_in_bytes" && feed_us 1 && say accept 1 && eventually queued 100000 &&
		say some 60000 && sleep 2 || return
	cat /proc/net/sovia/sock
	! queued 60000
}

removed() { unpaid && say move "$ROOT" && rmdir "$GROUP" && umount "$ROOT"; }

case $(uname -r) in
6.1.*)
	# shellcheck source=lib/holder.sh source-path=SCRIPTDIR
	. lib/holder.sh
	check 'a group' prepare
	check 'it is charged' accepted
	check 'windows open when data is read' opened
	check 'all data arrives' all_read read 2
	check 'then it is not' unpaid
	check 'its limit does not end connections' beyond
	check 'all data arrives' all_read read 8
	check 'windows do not open at a limit' narrowed
	check 'all data arrives' all_read read 1
	check 'the group can be removed' removed
	exec 7>&- 8<&-
	;;
*) skip 'control groups of version 1' 'not in these kernels' ;;
esac
finish
