#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rules (Documentation/rules.rst): the list, and what they do here and on the other node.
#
# vm: --pair --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

rule() { printf '%s\n' "$@" | sovia rule replace; }
there_rule() { there "printf '%s\n' ${*@Q} | sovia rule replace"; }
links() { equal "$(grep -c . /proc/net/sovia/link)" "$1"; }
remembered() { equal "$(wc -l </proc/net/sovia/memory)" "$1"; }
forget() { sysctl -qw net.sovia.fallback=1; }
logged() { dmesg | grep -q "refuses: $1"; }

# What a TCP client gets of the listener there.
tcp_client() {
	equal "$(python3 -c 'import errno, socket, sys
try:
    s = socket.create_connection((sys.argv[1], 5004), 20)
    s.sendall(b"x")
    print(len(s.recv(1)))
except OSError as error:
    print(errno.errorcode[error.errno])' "$SOVIA_PEER")" "$1"
}

each 'the list' rules list
each 'within a node' rules connect

peer=$(address 4 "$SOVIA_PEER")
check 'an echo server' start_server
check 'only TCP to that node'			rule "out peer $peer only-tcp"
check 'it is TCP'				kind_is 6
check '... and nothing has been asked for'	links 0
check 'the other node wants no links'		there_rule 'in only-tcp'
check 'that is up to it'			sovia rule flush
check 'it is TCP'				kind_is 6
check '... as it says so'			logged denied
check '... which is remembered'			remembered 1
check 'it does not mind any more'		there sovia rule flush
check 'that is forgotten'			forget
check 'no waiting'				rule 'out wait 0 auto'
check 'the first connection is TCP'		kind_is 6
check '... a later one AF_SOVIA'		eventually kind_is 254
check 'not from that interface'			rule "dev $SOVIA_NETDEV deny"
check 'it is denied'				kind_is EACCES
check 'no rules'				sovia rule flush
check 'the other node denies a port'		there_rule 'in port 5004 deny'
check 'it refuses'				kind_is ECONNREFUSED
check '... and a TCP client is reset'		tcp_client ECONNRESET
check 'the other node wants TCP there'		there_rule 'in port 5004 only-tcp'
check 'it is TCP'				kind_is 6
check 'the other node wants AF_SOVIA there'	there_rule 'in port 5004 only-sovia'
check 'it is AF_SOVIA'				kind_is 254
check '... and a TCP client is reset'		tcp_client ECONNRESET
check 'a rule that does not mean this node'	there_rule "in peer $peer deny"
check 'it is AF_SOVIA'				kind_is 254
check '... and TCP'				tcp_client 1
finish
