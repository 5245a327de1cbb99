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
	there 'rm -f /tmp/echo4 /tmp/echo6; for v in 4 6; do setsid socktool -$v echo 500$v /tmp/echo$v >/dev/null 2>&1 & done;
		for i in $(seq 100); do [ -e /tmp/echo4 ] && [ -e /tmp/echo6 ] && exit 0; sleep 0.1; done; exit 1'
}

stop_server() {
	there 'rm -f /tmp/echo4 /tmp/echo6; for i in $(seq 100); do pgrep -f "socktool -[46] echo" >/dev/null || exit 0; sleep 0.1; done; exit 1'
}

# Nothing arrives for a time, and no device tells of it: the cable between two
# switches is cut.
CUT="tc qdisc add dev eth0 clsact && tc filter add dev eth0 ingress matchall action drop"
MEND="tc qdisc del dev eth0 clsact"
wire_cut() { # SECONDS
	there "setsid sh -c 'sleep 0.2; $CUT; sleep $1; $MEND' >/dev/null 2>&1 &" || return
	sleep 0.2
	eval "$CUT" || return
	sleep "$1"
	eval "$MEND"
}

# "$@" happens under a transfer both ways, all of which has to arrive, once and in order.
transferring() {
	local flow status
	socktool flow node-b 5004 "$WORK/flow" >"$WORK/answer" 2>&1 &
	flow=$!
	eventually test -e "$WORK/flow" || { cat "$WORK/answer"; return 1; }
	"$@"
	status=$?
	rm "$WORK/flow"
	wait $flow
	cat "$WORK/answer"
	grep -q ' bytes, the same$' "$WORK/answer" && [ $status = 0 ]
}

# What a connection with these options says of the command "$1" in its time.
watched() { # WANTED COMMAND... -- OPTION...
	local wanted=$1 command=() answer watcher
	shift
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	socktool watch node-b 5004 "$WORK/watch" "$@" >"$WORK/answer" 2>&1 &
	watcher=$!
	eventually test -e "$WORK/watch" || { cat "$WORK/answer"; return 1; }
	"${command[@]}" || return
	# an error has been reported by now; otherwise it has to be alive
	rm "$WORK/watch"
	wait $watcher
	answer=$(cat "$WORK/answer")
	echo "$answer"
	[ "$answer" = "$wanted" ]
}
