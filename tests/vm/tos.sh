#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The type of service of RDMA packets (parameter and sysctl tos, and rules): those of both ends have it, whoever asks for
# the link.
#
# vm: --pair --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # eval's
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# DSCP 26
TOS=104
# Packets of the software device that have it, and all, since it was last asked.
count_packets() {
	nft -f - <<-END
		table inet tos {
			counter with4 {}
			counter with6 {}
			counter any {}
			chain out {
				type filter hook output priority 0;
				udp dport 4791 ip dscp 26 counter name with4
				udp dport 4791 ip6 dscp 26 counter name with6
				udp dport 4791 counter name any
			}
		}
	END
}
packets() { nft list counter inet tos "$1" | sed -n 's/.*packets \([0-9]*\).*/\1/p'; }
# All of them, the connection manager's included; a transfer has hundreds.
have_it() { # FAMILY
	local with4 with6 any
	with4=$(packets with4) with6=$(packets with6) any=$(packets any)
	echo "$with4 and $with6 of $any"
	[ "$(packets "with$1")" -gt 200 ] && [ $((with4 + with6)) = "$any" ]
}
none_has_it() { equal "$(packets with4)" 0 && equal "$(packets with6)" 0 && [ "$(packets any)" -gt 200 ]; }
forget() { nft reset counters >/dev/null; }
# Of the links that are up, at both ends.
shown() { # TOS
	local tos="\"tos\":$1,"
	sovia -j -d link show state up | grep -c "$tos" && there "sovia -j -d link show state up | grep -c '$tos'"
}
# The next lane is another one.
anew() { eventually no_links; }
no_links() { sovia link flush; ! grep -q . /proc/net/sovia/link; }
rule() { printf '%s\n' "$@" | sovia rule replace; }
with() { # PARAMETER=VALUE...
	stop_server
	modprobe -r sovia && modprobe sovia fallback=0 "$@" && there modprobe -r sovia && there modprobe sovia fallback=0 "$@" && start_server
}
transfers() { # FAMILY
	forget && there forget && socktool "-$1" ask "$SOVIA_PEER" "500$1" 1000000
}
# The link is asked for there.
served_here() {
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && there socktool ask "$SOVIA_NODE" 5014 1000000
}
peer_asks() {
	local status
	forget && there forget && served_here && have_it 4 && there have_it 4
	status=$?
	rm -f "$WORK/echo"
	return $status
}
both_have_it() { transfers "$1" && have_it "$1" && there have_it "$1"; }
neither_has_it() { transfers "$1" && none_has_it && there none_has_it; }

limit 60
check 'packets are counted'			count_packets
check '... there'				there count_packets
check 'a server on the peer'			start_server
check 'the default has none'			neither_has_it 4
check 'with the parameter'			with tos=$TOS
check 'both ends have it'			both_have_it 4
check '... with IPv6'				both_have_it 6
check 'the peer asks'				with tos=$TOS
check '... and both have it'			peer_asks
check '... as their links say'			shown $TOS
check 'the default again'			with
check 'the namespace has it'			eval "sovia set tos $TOS && anew"
check '... both ends have it'			both_have_it 4
check '... as their links say'			shown $TOS
check 'a rule says something else'		eval 'rule "out port 22 only-tcp" "out peer $(address 4 "$SOVIA_PEER") tos 0 auto" && anew'
check '... neither has it'			neither_has_it 4
check '... as their links say'			shown 0
check 'a rule for another peer'			eval 'rule "out peer 192.0.2.1 tos 0 auto" && anew'
check '... both ends have it'			both_have_it 4
check 'a rule for that peer'			eval 'sovia set tos 256 && rule "out peer $(address 4 "$SOVIA_PEER") tos 104 auto" && anew'
check '... both ends have it'			both_have_it 4
check 'no rules'				eval 'sovia rule flush && anew'
check '... neither has it'			neither_has_it 4
check 'the module can be unloaded'		eval 'stop_server && eventually modprobe -r sovia'
finish
