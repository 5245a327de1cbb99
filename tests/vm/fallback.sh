#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# AF_SOVIA programs and nodes without it, or TCP programs, reach each other (Documentation/fallback.rst).
#
# vm: --pair --timeout 900 --append "kunit.enable=0 sovia.fallback_wait=200"
# lab: it unloads the module
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh
export PYTHONPATH=$PWD/lib

remembered() { # HOW MANY
	cat /proc/net/sovia/memory
	[ "$(wc -l </proc/net/sovia/memory)" = "$1" ]
}
forgotten() { sysctl -qw net.sovia.fallback=1 && remembered 0; }

# By a connection of its own.
introduces_itself() {
	local status
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && there socktool ask "$SOVIA_NODE" 5014 1000
	status=$?
	rm -f "$WORK/echo"
	return $status
}

serve() { setsid becomes_tcp serve "$WORK/tcp" >/dev/null 2>&1 & eventually test -e "$WORK/tcp"; }

each 'one node' beside
check 'a TCP server' serve
each 'one node' becomes_tcp localhost
check 'a TCP server on the other node' there "$(declare -f serve); serve"
each 'the node has the module' becomes_tcp "$SOVIA_PEER"
check 'the other node unloads the module' there eventually rmmod sovia
each 'the node has none' becomes_tcp "$SOVIA_PEER"
check 'that is remembered' remembered 2
check '... and forgotten' forgotten
check 'the other node drops what it does not know' there 'nft add table inet silent &&
	nft "add chain inet silent in { type filter hook input priority 0; }" &&
	nft add rule inet silent in tcp dport 298 drop'
each 'the node does not answer' becomes_tcp "$SOVIA_PEER" IPv4
check 'that is remembered' remembered 1
check 'it has the module again' there 'nft delete table inet silent && modprobe sovia'
check 'an echo server of AF_SOVIA there' start_server
check 'connections are TCP still' kind_is 6
check '... until it introduces itself' introduces_itself
check '... and then AF_SOVIA' kind_is 254
check_device 'its device hears nothing while the link is UP' there 'nft add table inet deaf &&
	nft "add chain inet deaf in { type filter hook input priority 0; }" &&
	nft add rule inet deaf in udp dport 4791 drop'
check_device 'connections are TCP then' kind_is 6
finish
