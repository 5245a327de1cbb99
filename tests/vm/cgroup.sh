#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Control groups: data sent is charged to the sender's group, and a limit makes it wait.
#
# vm: --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

PATH=$PWD/lib:$PATH
ROOT=/sys/fs/cgroup
GROUP=$ROOT/sender
export GROUP
MAX=$((24 << 20))

prepare() {
	[ -e $ROOT/cgroup.procs ] || mount -t cgroup2 cgroup2 $ROOT || return
	echo +memory >$ROOT/cgroup.subtree_control && mkdir $GROUP
}

# The field $1 of fill_buffers' output.
value() { sed -n "s/.*\b$1 \([0-9]*\).*/\1/p" <<<"$filled"; }
fill_some() { filled=$(fill_buffers 127.0.0.1 100); local status=$?; echo "$filled"; return $status; }

# Some of it is in memory that is not charged.
sender_pays() {
	fill_some && [ "$(value charged)" -ge $(($(value sent) * 3 / 4)) ]
}

# Pages that a sender used while it was in another group are charged to that.
own_pages() {
	filled=$(move_group $GROUP $((512 << 10)))
	echo "$filled"
	[ "$(value charged)" -ge "$(value sent)" ] && [ "$(value sent)" -gt $((256 << 10)) ]
}

event() { awk -v name="$1" '$1 == name { print $2 }' $GROUP/memory.events; }

limited() {
	echo $MAX >$GROUP/memory.max
	fill_some || return
	cat $GROUP/memory.events
	[ "$(event max)" -gt 0 ] && [ "$(event oom_kill)" = 0 ] && [ "$(value charged)" -le $MAX ] &&
		equal "$(value whole)" 100 || return
	# A sender that was refused memory keeps its send buffer size.
	[ "$(value buffers)" -ge "$(sysctl -n net.core.wmem_default)" ]
}

# The kernel keeps at most one stock of charges per CPU.
nothing_charged() { [ "$(<$GROUP/memory.current)" -lt $((1 << 20)) ]; }

limit 240
check 'a control group' prepare
check 'the sender of messages is charged' sender_pays
check 'until they are read' eventually nothing_charged
check 'pages that another group had are not used' own_pages
check 'until they are read' eventually nothing_charged
check 'a limit makes senders wait, all arrives, and the OOM killer does not run' limited
check 'then nothing is charged' eventually nothing_charged
check 'the group can be removed' rmdir $GROUP
finish
