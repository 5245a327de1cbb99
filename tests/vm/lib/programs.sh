# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs as Debian ships them, for scripts that have sourced tap.sh from
# their own directory:
#
#     start NAME COMMAND...     in the background, under sovia-run; output in $WORK/NAME.log
#     stop NAME                 and wait for its end
#     listening PORT [NAME]     wait until AF_SOVIA listens there, or show NAME's output
#     over_link OUT IN COMMAND...    COMMAND succeeds, and the modules of both nodes
#                               count at least as many bytes from here to there and
#                               back, and no TCP connection is made (except siw's)
#     moved OUT IN              in COMMAND: it has determined the byte counts itself

# shellcheck source=pair.sh source-path=SCRIPTDIR
. lib/pair.sh
PROGRAMS=$(realpath ../..)/.build/programs
PATH=$PROGRAMS/usr/sbin:$PROGRAMS/usr/bin:$PATH
LD_LIBRARY_PATH=$(echo "$PROGRAMS"/usr/lib/*-linux-gnu)
export PATH LD_LIBRARY_PATH
WORK=/tmp/sovia-programs
mkdir -p $WORK

start() {
	local name=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	setsid bash -c 'echo $$ >"$0"; shift; exec sovia-run "$@"' "$WORK/$name.pid" - "$@" >"$WORK/$name.log" 2>&1 </dev/null &
}

stop() {
	local pid
	pid=$(cat "$WORK/$1.pid") || return
	kill "$pid"
	eventually gone "$pid"
}

gone() { ! kill -0 "$1" 2>/dev/null; }

listening() {
	eventually grep -q "^LISTEN [^ ]*:$1 " /proc/net/sovia/sock && return
	cat "$WORK/${2:-}.log" /proc/net/sovia/sock
	return 1
}

tcp_connections() { awk '$1 == "Tcp:" { opens = $6 + $7 - $8 } END { print opens }' /proc/net/snmp; }

# Bytes sent and received over links to the other node, TCP connections but for introductions of the kernels; in one process, since each
# is slow in a guest.
counts() {
	awk -v link="${SOVIA_LINK:-verbs}" '$1 == link "_tx_bytes" { tx = $2 } $1 == link "_rx_bytes" { rx = $2 } $1 == "peer_up" || $1 == "peer_join" { met += $2 }
		$1 == "Tcp:" { tcp = $6 + $7 - $8 } END { print tx, rx, tcp - met }' /proc/net/sovia/stat /proc/net/snmp
}

moved() { least=("$1" "$2" 0 "$2" "$1"); }

# Data queued in the kernel may still be in flight when a program has exited.
reached() {
	local i
	read -r -a after <<<"$(counts) $(there counts)"
	for i in 0 1 3 4; do
		[ $((after[i] - before[i])) -ge "${least[i]}" ] || return
	done
}

over_link() {
	local before=() after=() least status
	moved "$1" "$2"
	shift 2
	read -r -a before <<<"$(counts) $(there counts)"
	"$@" || return
	eventually reached
	status=$?
	echo "before: ${before[*]}, after: ${after[*]}, at least: ${least[*]} (tx, rx, TCP here; there)"
	[ $status = 0 ] && { [ "$SOVIA_DEVICE" = siw ] || equal "${after[2]} ${after[5]}" "${before[2]} ${before[5]}"; }
}
