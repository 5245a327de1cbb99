#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Loading and unloading: refused while in use, with other family numbers, repeatedly, and racing with
# programs that open sockets and with modprobe.  KUnit, which would run its suites with each load, has a
# stage of its own.
#
# vm: --append kunit.enable=0 --timeout 1800
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
WORK=$(mktemp -d)

loaded() { grep -q '^sovia ' /proc/modules; }
unload() { modprobe -r sovia; }
used() { awk '$1 == "sovia" { print $3 }' /proc/modules; }

# A socket in use pins the module; the program that holds it is started as: COMMAND... FILE.
refused_while() {
	local pid status=0
	"$@" "$WORK/held" &
	pid=$!
	eventually test -e "$WORK/held" || return
	if rmmod sovia; then
		echo "rmmod succeeded"
		status=1
	fi
	[ "$(used)" -gt 0 ] || { echo "nobody uses the module"; status=1; }
	rm -f "$WORK/held"
	wait $pid || status=1
	eventually unload || status=1
	modprobe sovia || status=1
	return $status
}

# Recent use leaves nothing that delays unloading for long.
unload_after_traffic() {
	modprobe sovia
	socktool echo 5000 "$WORK/echo" &
	eventually test -e "$WORK/echo" || return
	socktool ask 127.0.0.1 5000 300000 || return
	rm "$WORK/echo"
	wait $!
	eventually unload
}

# The kernel closes the sockets of a killed process.
unload_after_kill() {
	local pid
	modprobe sovia
	socktool hold-pair "$WORK/held" &
	pid=$!
	eventually test -e "$WORK/held" || return
	{ kill -KILL $pid; wait $pid; } 2>/dev/null
	rm "$WORK/held"
	eventually unload
}

# Open files of the module in /proc do not pin it, and do no harm after it is unloaded.
unload_under_proc() {
	modprobe sovia
	exec 3</proc/net/sovia/stat 4</proc/net/sovia/sock
	unload || return
	cat <&3 >/dev/null 2>&1
	cat <&4 >/dev/null 2>&1
	exec 3<&- 4<&-
	[ ! -e /proc/net/sovia ]
}

family_taken() { # NUMBER
	unload
	dmesg -C
	if modprobe sovia family="$1"; then
		echo "modprobe says that all is well; loaded: $(grep '^sovia ' /proc/modules)"
		dmesg
		return 1
	fi
	! loaded || return
	dmesg | grep -i "sovia.*family.*$1" && return
	echo "the log says nothing about it:"
	dmesg
	return 1
}

family_free() { # NUMBER
	unload
	modprobe sovia family="$1" || return
	equal "$(cat /sys/module/sovia/parameters/family)" "$1" || return
	socktool open || return
	unload
}

family_default() {
	modprobe sovia || return
	equal "$(cat /sys/module/sovia/parameters/family)" \
		"$(awk '$2 == "SOVIA_FAMILY_DEFAULT" { print $3 }' ../../uapi/linux/sovia.h)"
}

# The number it used must be free again.
number_given_back() {
	local number
	modprobe sovia
	number=$(cat /sys/module/sovia/parameters/family)
	unload || return
	! SOVIA_FAMILY=$number socktool open
}

twenty_times() {
	local round
	for round in {1..20}; do
		modprobe sovia || { echo "round $round: does not load"; return 1; }
		[ $((round % 5)) != 0 ] || unload_after_traffic || { echo "round $round: traffic"; return 1; }
		! loaded || unload || { echo "round $round: does not unload"; return 1; }
	done
}

# The module is loaded again while it is being unloaded, and programs open sockets.
unload_race() {
	local round pids=()
	for round in 1 2; do
		(while [ ! -e "$WORK/enough" ]; do modprobe sovia; socktool open 2>/dev/null; done) &
		pids+=($!)
	done
	for round in {1..30}; do
		rmmod sovia 2>/dev/null
		sleep 0.1
	done
	touch "$WORK/enough"
	wait "${pids[@]}"
	modprobe sovia && socktool open || return
	eventually unload
}

# Memory is freed: the module's caches are gone with it.
no_caches_left() {
	unload
	[ -r /proc/slabinfo ] || return
	eventually cache_free
}

cache_free() { ! grep -i sovia /proc/slabinfo; }

# Its own threads: the connection thread, and those that rescue its workqueues.  A kworker of the
# kernel's shows the workqueue that it worked for last, a destroyed one too.
threads_gone() { ! pgrep -l '^(kworker/R-)?sovia'; }

no_threads_left() {
	unload
	# the connection thread begins with the first listen() or connect()
	modprobe sovia
	socktool hold-pair "$WORK/held" &
	eventually test -e "$WORK/held" || return
	if threads_gone >/dev/null; then
		echo 'no thread is seen while the module works'
		return 1
	fi
	rm "$WORK/held"
	wait $!
	eventually unload || return
	eventually threads_gone
}

check 'a socket pins it' refused_while socktool hold
check 'a listener pins it' refused_while socktool hold-listener 5001
check 'a connection pins it' refused_while socktool hold-pair
check 'an IPv6 connection pins it' refused_while socktool -6 hold-pair
check 'a socket being passed to another process pins it' refused_while socktool hold-message
check 'it unloads after traffic' unload_after_traffic
check 'it unloads after a process was killed' unload_after_kill
check 'it unloads under open /proc files' unload_under_proc
for number in 1 2 10 16; do
	check "family $number is in use" family_taken $number
done
for number in 0 -1 46 255; do
	check "family $number is invalid" family_taken $number
done
check 'family 28 is free' family_free 28
check 'family 19 is free' family_free 19
check 'the default is the header'\''s' family_default
check 'the number is freed' number_given_back
limit 240
check 'loads and unloads twenty times' twenty_times
check 'unloading races with opening' unload_race
limit 60
check 'no thread is left' no_threads_left
check 'no cache is left' no_caches_left
finish
