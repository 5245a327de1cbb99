#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# One user fills memory by every way there is, while another one works (Documentation/limits.rst, tenants).
#
# tests/vm/siege.sh [CONNECTIONS [SECONDS]] leaves the limits as they are by default, and takes so many connections of
# each kind.
#
# vm: --pair --mem 512 --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
# lab: it adds users' limits
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

LIMITS=/sys/kernel/debug/sovia/limits
GREEDY=1234
WORKER=1235
CONNECTIONS=${1:-100}
# of each measurement
SECONDS_EACH=${2:-3}

chmod 1777 "$WORK"
ulimit -n 20000

as() { # UID COMMAND...
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

reload() { modprobe -r sovia && modprobe sovia "$@"; }

# Servers of both users on the peer, and of the worker here.
serve() { # UID PORT
	as "$1" setsid siege serve "$2" "$WORK/serve$2" >"$WORK/served$2" 2>&1 </dev/null &
	eventually test -e "$WORK/serve$2" || { cat "$WORK/served$2"; return 1; }
}
servers() {
	serve $WORKER 5011 &&
		there "chmod 1777 $WORK; ulimit -n 20000; serve $GREEDY 5010 && serve $WORKER 5011"
}

# The worker, over the wire and within the host at once.
begin_work() { # NAME
	local host
	for host in "$SOVIA_PEER" localhost; do
		as $WORKER siege work "$host" 5011 "$WORK/work-$host" >"$WORK/$1-$host" 2>&1 &
		eventually test -e "$WORK/work-$host" || { cat "$WORK/$1-$host"; return 1; }
	done
}
end_work() { # NAME
	local host
	for host in "$SOVIA_PEER" localhost; do
		rm "$WORK/work-$host"
	done
	eventually no_work
	for host in "$SOVIA_PEER" localhost; do
		echo "$1, $host: $(cat "$WORK/$1-$host")"
		# MiB, seconds and the longest pause
		[[ $(cat "$WORK/$1-$host") =~ ^[0-9.]*[1-9][0-9.]*\ [0-9.]+\ [0-9.]+$ ]] || return 1
	done
}
no_work() { ! pgrep -f 'siege work' >/dev/null; }
work_for() { begin_work "$1" && sleep "$SECONDS_EACH" && end_work "$1"; } # NAME

with_tcp() { # COMMAND...
	local status
	sysctl -qw net.sovia.fallback=1
	"$@"
	status=$?
	sysctl -qw net.sovia.fallback=0
	return $status
}
lower_limit() { echo 1024,1024 >/sys/module/sovia/parameters/mem; }
# A connection of the worker to the greedy one's server here: 254 is AF_SOVIA, 6 TCP.
kind_here() {
	local kind
	kind=$(as $WORKER env PYTHONPATH="$HERE/lib" python3 -c 'import socket, sovia
s = sovia.socket()
s.connect(("127.0.0.1", 5012))
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))')
	equal "$kind" "$1"
}

# A uid of a user namespace that the greedy one has made is no tenant of its own.
subuid_is_owner() {
	subuid $GREEDY 200001 socktool hold "$WORK/held" &
	eventually test -e "$WORK/held"
	cat $LIMITS
	grep -q "^tenant 0 $GREEDY " $LIMITS && ! grep -q "^tenant .* 200001 " $LIMITS
	local status=$?
	rm "$WORK/held"
	wait
	return $status
}

fill() {
	as $GREEDY setsid siege fill "$SOVIA_PEER" 5010 "$WORK/filled" "$CONNECTIONS" >"$WORK/fill" 2>&1 &
}
is_filled() { test -e "$WORK/filled"; }
filled() {
	local i
	for ((i = 0; i < 250; i++)); do
		! is_filled || break
		sleep 1
	done
	cat "$WORK/fill" $LIMITS
	# each way has taken something
	is_filled && equal "$(grep -cE ': [1-9][0-9]* (connections|hosts|listeners)' "$WORK/fill")" 8
}

# Both users, and no more than the second limit and a message of each connection.
bounded() {
	local memory most connections
	read -r _ memory _ most < <(grep memory $LIMITS)
	connections=$(awk '$1 == "tenant" { n += $5 } END { print n }' $LIMITS)
	echo "$memory pages of $most, $connections connections"
	[ "$memory" -le $((most + 3 * connections + 128)) ]
}
asked_back() { [ "$(sovia stat value pressure_tx)" -gt 0 ]; }

# A connection of the greedy one, which waits until memory is short.
begin_to_write() {
	as $GREEDY siege write "$SOVIA_PEER" 5010 "$WORK/write" >"$WORK/wrote" 2>&1 &
	eventually test -e "$WORK/write" || { cat "$WORK/wrote"; return 1; }
}
# It gets on, by a message at a time, and is told that it can write when it can.
writes() {
	local could could_not
	rm "$WORK/write"
	eventually no_writer
	cat "$WORK/wrote" $LIMITS
	read -r could could_not <"$WORK/wrote"
	[ "$could" -gt 0 ] && [ "$could_not" -le $((could / 10)) ]
}
no_writer() { ! pgrep -f 'siege write' >/dev/null; }

ended() { rm -f "$WORK/filled" "$WORK"/serve*; there "rm -f $WORK/serve*"; eventually no_siege; }
no_siege() { ! pgrep -x siege >/dev/null; }
nothing_held() { [ "$(awk '$1 == "memory" { print $2 }' $LIMITS)" = 0 ]; }
no_oom() { ! dmesg | grep -iE 'out of memory|oom-kill'; }

limit 300
[ $# != 0 ] || check 'a limit of 8 MiB' reload mem=2048,3072
check 'subuids count as who has them'		subuid_is_owner
check 'servers of two users'			servers
check 'one of which takes TCP, too'		with_tcp serve $GREEDY 5012
check '... but does not need it'		with_tcp kind_here 254
check 'one works alone'				work_for alone
echo "# ${output//$'\n'/$'\n# '}"
check 'the other one has a connection'		begin_to_write
check 'it works on'				begin_work filling
check 'while the other one takes all'		fill
check '... until no more is to be had'		filled
echo "# ${output//$'\n'/$'\n# '}"
check 'without an error'			end_work filling
echo "# ${output//$'\n'/$'\n# '}"
check 'it works'				work_for held
echo "# ${output//$'\n'/$'\n# '}"
check 'the memory is bounded'			bounded
echo "# ${output//$'\n'/$'\n# '}"
check 'windows have been asked back'		asked_back
check 'a lower limit'				lower_limit
check 'who holds more gets TCP connections only' with_tcp kind_here 6
check 'and writes as much as poll() says'	writes
echo "# ${output//$'\n'/$'\n# '}"
check 'all end'					ended
check 'and hold nothing'			eventually nothing_held
check 'the OOM killer has not run'		no_oom
check 'the module can be unloaded'		modprobe -r sovia
finish
