#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The kernel's own tests of ports and listeners (tools/testing/selftests/net), which run
# as they are, under the shim.
#
# vm: --timeout 700 --mem 1024
# shellcheck disable=SC2016 # much of this is for an inner shell
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
TESTS=$(realpath ../..)/.build/selftests

build() { make -s -C ../selftests; }

# In a namespace of its own, with the sysctl settings $1.
alone() { # SETTINGS COMMAND...
	local settings=$1
	shift
	unshare -n bash -c 'ip link set lo up
		for setting in $0; do sysctl -qw "${setting//,/ }"; done
		cd "$1" && shift && exec "$@"' "$settings" "$TESTS" "$@"
}

shimmed() { alone "$1" sovia-run "${@:2}"; }

# The same cases fail as over TCP: those of other protocols, on some kernels.
as_over_tcp() { # SETTINGS COMMAND...
	local wanted
	wanted=$(alone "$@" 2>&1 | grep -E '^(not )?ok') && equal "$(shimmed "$@" 2>&1 | grep -E '^(not )?ok')" "$wanted"
}

# It fails, since AF_SOVIA differs in what it tests, with a message like PATTERN.
differs() { # PATTERN SETTINGS COMMAND...
	local pattern=$1 log
	shift
	log=$(shimmed "$@" 2>&1) && return 1
	tail -n 5 <<<"$log"
	grep -q -- "$pattern" <<<"$log"
}

bhash() {
	local family=$1 address=$2 device=$3
	unshare -n bash -c 'ip link set lo up
		ip link add veth0 type veth peer name veth1
		ip link set veth0 up
		ip link set veth1 up
		case $2 in *:*) nodad=nodad ;; esac
		ip addr add $2 $nodad dev $3
		ulimit -n 32768
		exec sovia-run $0/bind_bhash 443 $1 $2' "$TESTS" "$family" "$address" "$device"
}

limit 300
check "they build" build
limit 100
check "bind_bhash, IPv4" bhash ipv4 10.8.8.8 lo
check "bind_bhash, IPv6" bhash ipv6 2001:0db8:0:f101::1 veth0
for test in bind_wildcard reuseaddr_conflict reuseport_addr_any reuseport_dualstack sk_bind_sendto_listen \
	sk_connect_zero_addr; do
	check $test shimmed '' ./$test
done
check "ip_local_port_range" as_over_tcp 'net.ipv4.ip_local_port_range=40000,49999' ./ip_local_port_range
check "reuseaddr_ports_exhausted" shimmed 'net.ipv4.ip_local_port_range=32768,32768 net.ipv4.ip_autobind_reuse=1' \
	./reuseaddr_ports_exhausted
check "stress_reuseport_listen" shimmed 'net.ipv6.ip_nonlocal_bind=1' ./stress_reuseport_listen 300 80
check "bind_timewait: there is no TIME_WAIT" differs 'Expected ret (0) == -1' '' ./bind_timewait
check "reuseport_bpf: a SYN has no data" differs 'expected socket' '' ./reuseport_bpf
skip "reuseport_bpf_cpu" "a connection within the host is not always taken by the processor that asks for it"
finish
