# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For scripts on one node of a pair that have sourced pair.sh: a process that holds sockets, see
# "holder", and what the peer sends it.  The script sets SIZE, bytes for each connection.

PORT=7000

start_holder() {
	mkfifo "$WORK/orders" "$WORK/answers" || return
	setsid holder <"$WORK/orders" >"$WORK/answers" 2>&1 &
}

# What "holder" does; its result.
say() {
	local answer
	echo "$*" >&7
	read -r -t "$LIMIT" answer <&8
	echo "$answer" | sed -n 's/^ok //p'
	[ "${answer%% *}" = ok ] || { echo "holder: $answer"; return 1; }
}

# The peer sends SIZE over each of N connections; fed: all of it was read.
feed() { # [HOST] PORT N
	(there holder feed "$@" $SIZE; echo $? >"$WORK/fed") >"$WORK/feeder" 2>&1 &
	[ $# = 3 ] || eventually grep -q listening "$WORK/feeder"
}
fed() { eventually test -s "$WORK/fed"; cat "$WORK/feeder"; equal "$(<"$WORK/fed")" 0; rm "$WORK/fed"; }

feed_us() { feed "$SOVIA_NODE" $PORT "$1"; }

# Bytes in sockets, by the page: the sum over connections, and what a group is charged.
held() { awk '$1 == "ESTABLISHED" && match($0, / rmem=[0-9]*/) { pages += int((substr($0, RSTART + 6, RLENGTH - 6) + 4095) / 4096) }
	END { print pages * 4096 }' /proc/net/sovia/sock; }
queued() { awk '{ sub(/.* inq=/, ""); sum += $1 } END { exit !(sum >= '"$1"') }' /proc/net/sovia/sock; }
count() { sovia stat value "$1"; }
all_read() { equal "$(say "$1")" $((SIZE * $2)) && fed; } # HOW, CONNECTIONS

check 'a process that holds sockets' start_holder
exec 7>"$WORK/orders" 8<"$WORK/answers"
check 'it obeys' eval 'read -r -t 60 <&8'
