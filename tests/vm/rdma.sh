#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# RDMA device hotplug: before the module is loaded, after it, and under load.
#
#     node-a, rxe0  ------  rxe0, node-b
#
# (or siw0, with the option --device siw)
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

device_anew() { delete_device && add_device; }

works() {
	socktool -4 ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006
}

works_again() {
	eventually works && return
	# for debugging: is it the module, the device or the wire?
	ping -c 1 -W 2 -4 "$SOVIA_PEER"
	ping -c 1 -W 2 -6 "$SOVIA_PEER"
	rdma link
	cat /proc/net/sovia/link
	there 'rdma link; cat /proc/net/sovia/link'
	return 1
}

works_back() { # node-b connects to node-a
	local status
	socktool -4 echo 5014 "$WORK/echo" &
	eventually test -e "$WORK/echo" || return
	there socktool -4 ask "$SOVIA_NODE" 5014
	status=$?
	rm "$WORK/echo"
	wait
	return $status
}

# The bytes went over RDMA, as both nodes count them.
over_verbs() {
	local before there_before size=500000
	before=$(sovia stat value verbs_tx_bytes)
	there_before=$(there sovia stat value verbs_rx_bytes)
	socktool ask "$SOVIA_PEER" 5004 $size || return
	[ $(($(sovia stat value verbs_tx_bytes) - before)) -ge $size ] || { sovia stat; return 1; }
	[ $(($(there sovia stat value verbs_rx_bytes) - there_before)) -ge $size ] || { there sovia stat; return 1; }
}

# Local connections need no device and do not use it.
local_by_loop() {
	local before
	socktool echo 5015 "$WORK/echo" &
	eventually test -e "$WORK/echo" || return
	# bytes, not messages: the lane to node-b is probed periodically
	before=$(sovia stat value verbs_tx_bytes)
	socktool ask 127.0.0.1 5015 && socktool ask "$SOVIA_NODE" 5015
	local status=$?
	rm "$WORK/echo"
	wait
	[ $status = 0 ] && equal "$(sovia stat value verbs_tx_bytes)" "$before"
}

# Traffic to the peer while "$@" cuts the network: each side
# ends within a minute.
ends_under_load() {
	local status
	give_up_after 3 || return
	pump_until "$@"
	status=$?
	give_up_after 60
	return $status
}

# Seconds of attempts to replace a lane until its connections end.
give_up_after() {
	echo "$1" >/sys/module/sovia/parameters/recovery_timeout && there "echo $1 >/sys/module/sovia/parameters/recovery_timeout"
}

pump_until() {
	local pump
	there '[ ! -e /tmp/sink.pid ] || kill $(cat /tmp/sink.pid) 2>/dev/null
		rm -f /tmp/sink; setsid socktool sink 5007 /tmp/sink >/tmp/sink.log 2>&1 & echo $! >/tmp/sink.pid
		for i in $(seq 100); do grep -q listening /tmp/sink.log && exit 0; sleep 0.1; done; exit 1' || return
	socktool pump "$SOVIA_PEER" 5007 >"$WORK/pump" 2>&1 &
	pump=$!
	eventually grep -q pumping "$WORK/pump" || { cat "$WORK/pump"; return 1; }
	sleep 2
	"$@" || return
	wait_for_end $pump || { echo "the sender hangs"; cat "/proc/$pump/stack"; return 1; }
	tail -n 1 "$WORK/pump" | grep -E '^(ECONNRESET|ETIMEDOUT|EPIPE|ENETDOWN|ENETUNREACH|EHOSTUNREACH|ENETRESET|ECONNABORTED)$' ||
		{ echo "the sender says:"; cat "$WORK/pump"; return 1; }
	there 'for i in $(seq 600); do [ -s /tmp/sink ] && exit 0; sleep 0.1; done; echo the receiver hangs; cat /proc/$(cat /tmp/sink.pid)/stack; exit 1' || return
	there 'kill $(cat /tmp/sink.pid); grep -E "^(EOF|ECONNRESET|ETIMEDOUT|ENETDOWN|ENETUNREACH|EHOSTUNREACH|ENETRESET) " /tmp/sink'
}

wait_for_end() { # PID
	local tries
	for tries in {1..600}; do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	echo "$1 goes on after $tries tries"
	return 1
}

# Without a device connect() fails within the usual time.
fails_without_device() {
	local answer
	answer=$(timeout 60 socktool connect "$SOVIA_PEER" 5004) || { echo "no answer in time"; return 1; }
	case $answer in
	ENETUNREACH | EHOSTUNREACH | ETIMEDOUT | ENETDOWN) echo "$answer" ;;
	*) echo "connect says $answer"; return 1 ;;
	esac
}

# The module first, then the device: this order must work as well.
module_before_device() {
	delete_device && modprobe -r sovia && modprobe sovia && add_device
}

# A listener older than the device can be reached through it.
listener_before_device() {
	local status
	delete_device || return
	socktool echo 5016 "$WORK/echo" &
	eventually test -e "$WORK/echo" || return
	add_device || return
	there 'for i in $(seq 50); do socktool ask $SOVIA_PEER 5016 && exit 0; sleep 0.2; done; exit 1'
	status=$?
	rm "$WORK/echo"
	wait
	return $status
}

# Device and module are removed while the peer keeps its link.
reload_beside_link() {
	works || return
	modprobe -r sovia || return
	modprobe sovia || return
	works_again
}

reload_of_peer() {
	works || return
	stop_server || return
	there 'for i in $(seq 100); do modprobe -r sovia && break; sleep 0.2; done; modprobe sovia' || return
	start_server || return
	works_again
}

device_many_times() {
	local round
	for round in {1..5}; do
		if ! { device_anew && works_again; }; then
			echo "round $round"
			return 1
		fi
	done
}

# rxe then fails all sends permanently, also those of the connection manager: until the
# device is recreated, no program connects over it.
interface_down() {
	echo 1 >"/proc/sys/net/ipv6/conf/$SOVIA_NETDEV/keep_addr_on_down" && ip link set "$SOVIA_NETDEV" down || return
	sleep 2
	ip link set "$SOVIA_NETDEV" up && device_anew
}

limit 180
check 'a server on the peer' start_server
check 'both families work' works
check 'from the peer, too' works_back
check 'remote traffic goes over verbs' over_verbs
check 'local traffic does not' local_by_loop
check_device 'the local device is removed under load' ends_under_load delete_device
check_device 'connect without a device' fails_without_device
check_device 'local traffic needs no device' local_by_loop
check_device 'the device is back' add_device
check 'all works again' works_again
check 'from the peer, too, again' works_back
check_device 'the peer'\''s device is removed under load' ends_under_load there delete_device
check_device 'the peer'\''s device is back' there add_device
check 'all works again after that' works_again
check_device 'module before device' module_before_device
check 'works in that order' works_again
check_device 'listener before device' listener_before_device
check 'module reloaded beside a link' reload_beside_link
check 'the peer'\''s module reloaded beside a link' reload_of_peer
check_device 'the device is removed and added five times' device_many_times
check_cut 'the wire is cut for 2 s under load' transferring wire_cut 2
check 'all works after that' works_again
check_cut 'the wire is cut for 12 s under load' transferring wire_cut 12
check 'all works after that as well' works_again
check_device 'the interface goes down under load, the device is recreated' transferring interface_down
check 'all works with it' works_again
finish
