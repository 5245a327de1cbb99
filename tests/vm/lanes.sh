#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Several lanes between two nodes: connections are spread over them, whatever the peer's number of lanes.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# So many that all lanes are used, except with a probability of one in a million.
CONNECTIONS=64
FOR_MOST=320

crowd_of() { sovia-run many_conns "$1" 5004 "${2:-$CONNECTIONS}"; }

crowd_there() { there "sovia-run many_conns $SOVIA_NODE 5004 $CONNECTIONS"; }

lanes_are() { # WANT COMMAND...
	local want=$1 got
	shift
	got=$("$@") || { echo "$got"; cat /proc/net/sovia/link; return 1; }
	equal "$got" "$want"
}

# The number of lanes that each node requests; earlier links and sockets are gone then.
load() { # HERE THERE
	stop_servers || return
	modprobe -r sovia && modprobe sovia "lanes=$1" || return
	there "modprobe -r sovia && modprobe sovia lanes=$2" || return
	start_server || return
	setsid socktool echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}

stop_servers() {
	rm -f "$WORK/echo"
	eventually no_echo && stop_server
}

# No links exist, and both nodes connect: of each lane one attempt wins.
both_at_once() {
	local status
	crowd_there >"$WORK/there" 2>&1 &
	lanes_are '0 1 2 3' crowd_of "$SOVIA_PEER"
	status=$?
	wait $! || { cat "$WORK/there"; return 1; }
	[ $status = 0 ] && equal "$(cat "$WORK/there")" '0 1 2 3'
}

unloads() {
	stop_servers && modprobe -r sovia && there modprobe -r sovia
}

limit 120
check '4 lanes on both nodes'			load 4 4
check 'both connect at once, over all lanes'	both_at_once
check 'and again over existing lanes'		both_at_once
check '1 lane here, 4 there'			load 1 4
check 'this node uses 1'			lanes_are 0 crowd_of "$SOVIA_PEER"
check 'the peer uses 4'				lanes_are '0 1 2 3' crowd_there
check '3 lanes here, 2 there'			load 3 2
check 'this node uses 3'			lanes_are '0 1 2' crowd_of "$SOVIA_PEER"
deny 'more lanes than the maximum'		load 17 1
check 'the maximum of lanes'			load 16 1
check 'this node uses 16'			lanes_are '0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15' crowd_of "$SOVIA_PEER" $FOR_MOST
check 'the module unloads'			unloads
check 'and loads again for the checks at shutdown'	modprobe sovia
finish
