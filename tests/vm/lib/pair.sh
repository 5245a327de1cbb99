# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# For scripts on node-a of a pair that have sourced tap.sh from their own folder.

HERE=$PWD
PATH=$HERE/lib:$PATH
# shellcheck disable=SC2034 # for the script
WORK=$(mktemp -d)

# Runs a command on node-b, with the tools of lib.
there() { on-peer "cd $HERE && PATH=$HERE/lib:\$PATH && $*"; }

# An echo server on node-b for the whole script: it lives through everything.
start_server() {
	there 'rm -f /tmp/echo4 /tmp/echo6; for v in 4 6; do setsid sov -$v echo 500$v /tmp/echo$v >/dev/null 2>&1 & done;
		for i in $(seq 100); do [ -e /tmp/echo4 ] && [ -e /tmp/echo6 ] && exit 0; sleep 0.1; done; exit 1'
}

stop_server() {
	there 'rm -f /tmp/echo4 /tmp/echo6; for i in $(seq 100); do pgrep -f "sov -[46] echo" >/dev/null || exit 0; sleep 0.1; done; exit 1'
}

# Nothing arrives for a time, and no device tells of it: the cable between two
# switches is cut.
wire_cut() { # SECONDS
	local cut="tc qdisc add dev eth0 clsact && tc filter add dev eth0 ingress matchall action drop"
	local mend="tc qdisc del dev eth0 clsact"
	there "setsid sh -c 'sleep 0.2; $cut; sleep $1; $mend' >/dev/null 2>&1 &" || return
	sleep 0.2
	eval "$cut" || return
	sleep "$1"
	eval "$mend"
}
