#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Control groups: data received from another node is charged to the group of the program that opened or
# accepted the socket, until it is read; a limit resets no connection.
#
# vm: --pair --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

ROOT=/sys/fs/cgroup
# More than a window, so that senders wait.
SIZE=$((300 << 10))

charged() { awk '$1 == "sock" { print $2 }' "$ROOT/$1/memory.stat" 2>&1; }

is_paid() { equal "$(charged "$1")" "$(held)" && [ "$(held)" -ge "$2" ]; }
pays() { eventually is_paid "$@" || { cat /proc/net/sovia/sock "$ROOT/$1/memory.stat"; return 1; }; }
has_none() { [ "$(charged "$1")" = 0 ]; }
pays_nothing() { eventually has_none "$1" || { grep sock "$ROOT/$1/memory.stat"; return 1; }; }

prepare() {
	[ -e $ROOT/cgroup.procs ] || mount -t cgroup2 cgroup2 $ROOT || return
	echo +memory >$ROOT/cgroup.subtree_control && mkdir $ROOT/{a,b,c}
}

# What has come before accept(), and after it, is of the group that accepts.
accepted() {
	say move $ROOT/a && say listen $PORT && say move $ROOT/b && feed_us 4 && eventually queued 100000 &&
		say accept 4 && pays b 200000
}
only_there() { equal "$(charged a)" 0; }
moved() { say move $ROOT && pays b 200000 && only_there; }
passed() { say pass $ROOT/a && pays b 200000 && only_there; }
# Too little for the peer to send more.
partly() {
	local before
	before=$(held)
	say some 20000 && pays b 100000 && [ "$(held)" -lt "$before" ]
}

unread() {
	say move $ROOT/b && say listen $PORT && feed_us 2 && say accept 2 && pays b 100000 && say close
	eventually test -s "$WORK/fed" && rm "$WORK/fed"
}

connected() {
	feed 7001 4 && say move $ROOT/b && say connect "$SOVIA_PEER" 7001 4 && say move $ROOT && pays b 200000
}

event() { awk -v name="$1" '$1 == name { print $2 }' $ROOT/c/memory.events; }

# The peer sends when it has all connections; then nothing in the group can be reclaimed.
is_beyond() { [ "$(charged c)" -gt $((1 << 20)) ]; }
beyond() {
	local resets
	resets=$(count reset_tx)
	echo $((1 << 20)) >$ROOT/c/memory.max && feed 7001 20 && say move $ROOT/c && say connect "$SOVIA_PEER" 7001 19 &&
		say move $ROOT && say connect "$SOVIA_PEER" 7001 1 && eventually is_beyond || return
	cat $ROOT/c/memory.events
	[ "$(event max)" -gt 0 ] && [ "$(event oom_kill)" = 0 ] && equal "$(count reset_tx)" "$resets"
}

# Its sockets live on.
removed() { rmdir $ROOT/c && all_read read 20; }
dying() { awk '$1 == "nr_dying_descendants" { print $2 }' $ROOT/cgroup.stat; }
none_dies() { [ "$(dying)" = 0 ]; }
# Each processor may keep a group, for its next charge, and pages of programs keep theirs.
freed() {
	local cpu
	rmdir $ROOT/a $ROOT/b && mkdir $ROOT/other || return
	echo 3 >/proc/sys/vm/drop_caches
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		taskset -c "$cpu" sh -c "echo \$\$ >$ROOT/other/cgroup.procs && head -c 1M /dev/zero | tail -c 1M >/dev/null"
	done
	eventually none_dies || { cat $ROOT/cgroup.stat; return 1; }
}

# shellcheck source=lib/holder.sh source-path=SCRIPTDIR
. lib/holder.sh
check 'groups' prepare
check 'the group of the program that accepts is charged' accepted
check 'that of the listener is not' only_there
check 'and not that to which the program moves' moved
check 'or to which it passes the sockets' passed
check 'it pays less when some is read' partly
check 'all data arrives' all_read read 4
check 'the group pays nothing then' pays_nothing b
check 'data that is not read is charged until close()' unread
check 'then nothing' pays_nothing b
check 'a socket that connects is charged to the group of its program' connected
check 'until splice() takes the data' all_read splice 4
check 'then nothing' pays_nothing b
check 'a limit does not end connections' beyond
check 'the group can be removed, and all data arrives' removed
exec 7>&- 8<&-
check 'nothing is left of the groups' freed
finish
