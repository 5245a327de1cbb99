#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# iWARP with the port mapper, iwpmd, as Debian runs it where such a card is: listeners and requests have other TCP ports
# than 299 and those from 665 to 1023, and a request may seem to come from no reserved port.  On both nodes links go over the
# card, whichever of them asks.  Where iwpmd is on one of them alone, or dies, connections work: over a lane once the mapper
# has waited 10 s for the other one in vain, or over TCP if it is the asker who has none.
#
# vm: --pair --device siw --profile x722 --timeout 900 --append kunit.enable=0
# lab: the devices are tests/devprofile's, which have a port mapper
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

start_iwpmd() { iwpmd && eventually pgrep -x iwpmd; }
kill_iwpmd() { pkill -KILL -x iwpmd; eventually no_iwpmd; }
no_iwpmd() { ! pgrep -x iwpmd; }

# TCP connections of lanes that begin on this node, to 299 as to others.
count_lanes() {
	nft -f - <<-END
		table inet lanes {
			counter plain {}
			counter mapped {}
			chain out {
				type filter hook output priority 0;
				tcp flags & (syn | ack) == syn tcp dport 299 counter name plain
				tcp flags & (syn | ack) == syn tcp dport >= 1024 tcp dport != { 5004, 5014 } counter name mapped
			}
		}
	END
}
lanes() { nft list counter inet lanes "$1" | sed -n 's/.*packets \([0-9]*\).*/\1/p'; }
forget() { nft reset counters >/dev/null; }

# The module listens anew: ports are mapped when it begins to.
both_anew() {
	stop_server
	rm -f "$WORK/echo"
	eventually modprobe -r sovia && there eventually modprobe -r sovia && modprobe sovia && there modprobe sovia && start_server &&
		serve_here
}
serve_here() {
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}

# A transfer asked for here, and there, over verbs, with lanes to mapped ports or not.
over_verbs() { # NODE-THAT-ASKS
	local before
	before=$(sovia stat value verbs_tx_bytes)
	if [ "$1" = here ]; then
		socktool ask "$SOVIA_PEER" 5004 1000000
	else
		there socktool ask "$SOVIA_NODE" 5014 1000000
	fi || return
	[ $(($(sovia stat value verbs_tx_bytes) - before)) -ge 1000000 ] || { cat /proc/net/sovia/link; sovia peer; return 1; }
}
asks_over() { # here|there plain|mapped
	both_anew && forget && there forget && over_verbs "$1" || return
	if [ "$1" = here ]; then seen "$(lanes plain)" "$(lanes mapped)" "$2"
	else seen "$(there lanes plain)" "$(there lanes mapped)" "$2"; fi
}
seen() { # PLAIN MAPPED WHICH
	echo "$1 to 299, $2 to others"
	if [ "$3" = plain ]; then [ "$1" -gt 0 ] && [ "$2" = 0 ]; else [ "$1" = 0 ] && [ "$2" -gt 0 ]; fi
}

# A lane that breaks is replaced.
breaks() { socktool break 3 && over_verbs here; }
# As if the kernel was not told in time which port of the asker is behind the mapped one.
unknown_port() { echo "$SOVIA_RDMA unknown_port" >/sys/kernel/debug/devprofile/inject; }
# Connections work, with whatever.
works() { both_anew && socktool ask "$SOVIA_PEER" 5004 && there socktool ask "$SOVIA_NODE" 5014; }
no_complaints() { awk '/^bad_|^protocol_/ && $2 { print; bad = 1 } END { exit bad }' /proc/net/sovia/stat; }

limit 240
check 'lanes are counted'			count_lanes
check '... there'				there count_lanes
check 'without iwpmd: links to 299'		asks_over here plain
check 'iwpmd here'				start_iwpmd
check '... and there'				there start_iwpmd
check 'with iwpmd: links to other ports'	asks_over here mapped
check '... a lane is replaced'			breaks
check '... none is refused'			no_complaints
check '... nor there'				there no_complaints
check 'the other node asks'			asks_over there mapped
check 'iwpmd is killed there'			there kill_iwpmd
check '... links to 299'			asks_over here plain
check '... where the mapper has given up, connections work'	works
check 'iwpmd there again'			there start_iwpmd
check '... links to other ports'		asks_over here mapped
check 'where a request comes from is not known there'	there unknown_port
check '... links all the same'			asks_over here mapped
check 'iwpmd is killed here'			kill_iwpmd
check '... connections work'			works
check 'and there'				there kill_iwpmd
check 'links to 299 again'			asks_over here plain
check 'the module can be unloaded'		eval 'stop_server; rm -f "$WORK/echo"; eventually modprobe -r sovia'
finish
