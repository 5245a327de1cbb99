#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Kernels introduce themselves: who may have the reserved ports, what an anchor is for, how its loss, a reload and a
# reboot of the peer end, who is not let in, and what a namespace may be set to.
#
# vm: --pair --timeout 1200 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

OBJECTS=/sys/kernel/debug/sovia/objects

count() { sovia stat value "$1"; }
object() { awk -v name="$1" '$1 == name { print $2 }' $OBJECTS; }
reload() { modprobe -r sovia && modprobe sovia; }
ask() { socktool -"$1" ask "$SOVIA_PEER" 500"$1"; }
ask_both() { ask 4 && ask 6; }
anchors() { ss -Htn state established '( dport = :298 or sport = :298 )'; }
anchors_are() { equal "$(anchors | wc -l)" "$1" || { anchors; return 1; }; }
local_of() { address "$1" "$SOVIA_NODE"; }
remote_of() { address "$1" "$SOVIA_PEER"; }

# ---- ports ----

ports_are_taken() {
	local port
	for port in 297 298; do
		equal "$(stranger take $port)" EADDRINUSE || return
	done
}

ports_are_free() {
	sysctl -q net.sovia.rendezvous=0 || return
	# listeners leave nothing behind
	equal "$(stranger take 297) $(stranger take 298)" 'taken taken'
	local status=$?
	sysctl -q net.sovia.rendezvous=2 && ports_are_taken && return $status
}

# Who lowers the limit does not hand out the ports of a node that runs.
held_ports() {
	sysctl -q net.ipv4.ip_unprivileged_port_start=297 net.sovia.rendezvous=2 && ports_are_taken
	local status=$?
	# Interfaces that come and go start that work, too; the sysctl waits for it.
	ip link add held type vrf table 99 && ip link del held &&
		sysctl -q net.sovia.rendezvous=2 && ports_are_taken || status=1
	sysctl -q net.ipv4.ip_unprivileged_port_start=1024 net.sovia.rendezvous=2
	return $status
}

unsafe_ports() {
	sysctl -q net.ipv4.ip_unprivileged_port_start=298 net.sovia.rendezvous=0 net.sovia.rendezvous=2 || return
	equal "$(stranger take 297)" taken
	local status=$?
	dmesg | grep 'ip_unprivileged_port_start lets users' || status=1
	sysctl -q net.ipv4.ip_unprivileged_port_start=1024 net.sovia.rendezvous=2
	ports_are_taken && return $status
}

# ---- the anchor ----

introduced_once() {
	local before
	before=$(count peer_up)
	ask_both && ask_both && anchors_are 2 && equal "$(($(count peer_up) - before)) $(count bad_mac)" '2 0'
}

kill_anchors() { ss -HtK '( dport = :298 or sport = :298 )' >/dev/null; eventually anchors_are 0; }

# Connections and links go on; who opens another connection introduces itself again.
without_anchor() { transferring kill_anchors && directions 0 0 && ask 4 && anchors_are 1 && directions 1 0; }
lane_dies_without_anchor() { transferring break_lane; }
break_lane() {
	local before
	kill_anchors || return
	before=$(count link_recover)
	echo all >/sys/kernel/debug/sovia/break || return
	eventually recovered "$before" && anchors_are 0
}
recovered() { [ "$(count link_recover)" -gt "$1" ]; }

# ---- directions ----

# What a node says of its link over IPv4.
directions_of() { awk '$1 == "UP" && $3 ~ /ffff/ { print $(NF - 1), $NF }' /proc/net/sovia/link; }
directions() { equal "$(directions_of)" "out=$1 in=$2" && equal "$(there directions_of)" "out=$2 in=$1"; }

serve_back() {
	rm -f "$WORK/echo"
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
end_back() { rm -f "$WORK/echo"; eventually no_echo; }
ask_back() { there socktool -4 ask "$SOVIA_NODE" 5014; }
connect_back() { there socktool -4 connect "$SOVIA_NODE" 5014; }

# By one more exchange, once.
other_direction() {
	local before
	reload && ask 4 && directions 1 0 && serve_back || return
	before=$(count link_up)
	ask_back && directions 1 1 && ask_back && ask 4 && anchors_are 1 && equal "$(count link_up)" "$before"
	local status=$?
	end_back && return $status
}

# Nobody may ask this node.
one_direction() {
	local status
	reload && sysctl -q net.sovia.rendezvous=1 && ask 4 && serve_back || return
	equal "$(connect_back)" ECONNREFUSED && directions 1 0 && ask 4
	status=$?
	sysctl -q net.sovia.rendezvous=2
	ask_back && directions 1 1 || status=1
	end_back && return $status
}

# It is forgotten with the anchor, although the link stays.
direction_again() {
	local status
	reload && ask 4 && serve_back && ask_back && directions 1 1 && kill_anchors && sysctl -q net.sovia.rendezvous=1 || return
	equal "$(connect_back)" ECONNREFUSED && ask 4 && directions 1 0
	status=$?
	sysctl -q net.sovia.rendezvous=2
	end_back && return $status
}

# The other node has the anchor still, and so does not ask: its CONN is refused, and then it does.
anchor_lost_here() {
	local before status
	reload && ask 4 && serve_back && ask_back && nft add table inet mute &&
		nft 'add chain inet mute out { type filter hook output priority 0; }' &&
		nft add rule inet mute out tcp flags rst drop && kill_anchors || return
	before=$(count conn_refused)
	ask_back && equal "$(($(count conn_refused) - before))" 1 && equal "$(directions_of)" 'out=0 in=1'
	status=$?
	nft delete table inet mute
	end_back && return $status
}

# At once, again and again.
both_directions() {
	local i
	serve_back || return
	for i in {1..10}; do
		kill_anchors
		ask 4 &
		ask_back && wait $! && directions 1 1 || return
	done
	end_back
}

# Segments with the other end's address and ports, to both ends of an anchor, and transfers meanwhile.
forged() { # COUNT
	local before
	reload && ask 4 || return
	before=$(anchors; count peer_up; count link_down)
	transferring forge "$1" && equal "$(anchors; count peer_up; count link_down)" "$before"
}
forge() {
	local own other
	own=$(local_of 4) other=$(remote_of 4)
	there forger "$other" 298 "$own" 297 "$1" && forger "$own" 297 "$other" 298 "$1" &&
		there forger "$other" 297 "$own" 298 "$1"
}

# ---- the peer's kernel is another one ----

server_again() { there 'modprobe -r sovia; modprobe sovia'; start_server; }
peer_reloads() { stop_server && server_again && ask_both && anchors_are 2; }
we_reload() { reload && ask_both && anchors_are 2; }
both_reload() { stop_server && reload && server_again && ask_both && anchors_are 2; }

# Its host says nothing of its end: only the next one does.
peer_reboots() {
	ask_both || return
	eval "$CUT" && there "$CUT && rm -f /tmp/echo4 /tmp/echo6; sleep 1; modprobe -r sovia; $MEND; modprobe sovia" && eval "$MEND" ||
		return
	start_server && ask_both
}

# ---- an address that moves ----

MOVING=10.77.0.50
recovery_timeout() {
	echo "$1" >/sys/module/sovia/parameters/recovery_timeout &&
		there "echo $1 >/sys/module/sovia/parameters/recovery_timeout"
}
address_there() { there "ip addr $1 ${2:-$MOVING/24} dev \"\$SOVIA_NETDEV\""; }
address_is_served() { address_there add && socktool ask $MOVING 5004; }
links_there_are() { equal "$(there "grep -c '$1.*$MOVING.*$2' /proc/net/sovia/link")" "$3"; }
bounce() {
	address_there del && eventually links_there_are RECOVERING '' 1 && links_there_are RECOVERING 'in=0' 1 && sleep 1 &&
		address_there add
}
bounce_v6() {
	local MOVING=fd77::50
	address_there add 'fd77::50/64 nodad' && socktool -6 ask $MOVING 5006 && address_there del fd77::50/64 &&
		eventually links_there_are RECOVERING '' 1 && links_there_are RECOVERING 'in=0' 1 &&
		address_there add 'fd77::50/64 nodad' && eventually links_there_are UP '' 1 && socktool -6 ask $MOVING 5006 &&
		address_there del fd77::50/64
}
leaves_for_good() { address_there del && eventually links_there_are '' '' 0; }
# With fallback, since that is what the new owner speaks.
moves() {
	local status
	socktool ask $MOVING 5004 && address_there del || return
	there "ip netns add other && ip link add link \"\$SOVIA_NETDEV\" name moved type macvlan mode bridge &&
		ip link set moved netns other && ip -n other addr add $MOVING/24 dev moved && ip -n other link set moved up &&
		{ ip netns exec other socat TCP-LISTEN:5004,fork EXEC:cat >/dev/null 2>&1 & }" || return
	ip neigh flush all
	sysctl -qw net.sovia.fallback=1
	TARGET=$MOVING eventually kind_is 6
	status=$?
	sysctl -qw net.sovia.fallback=0
	there 'pkill socat; ip netns del other'
	return $status
}

# ---- modes ----

mode() { there "sysctl -q net.sovia.rendezvous=$1"; }
off_there() { mode 0 && reload && equal "$(ask 4 2>&1 | tail -n 1)" "$1"; }
off_here() {
	reload && sysctl -q net.sovia.rendezvous=0 || return
	ask 4
	local status=$?
	sysctl -q net.sovia.rendezvous=2 && [ $status != 0 ]
}
refused_there() { # MODE
	local answer status
	mode "$1" && reload || return
	answer=$(ask 4 2>&1)
	status=$?
	mode 2
	echo "$answer"
	[ $status != 0 ] && grep -q 'Connection refused' <<<"$answer"
}
# It may ask, and nobody it.
asks_only() {
	reload && mode 1 && serve_back || return
	ask_back && equal "$(socktool -4 connect "$SOVIA_PEER" 5004)" ECONNREFUSED
	local status=$?
	end_back && mode 2 && return $status
}
# Those that have introduced themselves stay while it only asks, and others can do so again afterwards.
service() { ss -Hltn 'sport = :298'; }
services_are() { [ "$(service | wc -l)" = "$1" ]; }
answers_again() {
	reload && ask_both && anchors_are 2 && mode 1 && there eventually services_are 0 && anchors_are 2 && ask_both || return
	mode 2 && there eventually services_are 2 && reload && ask_both
}
not_by_users() { ! setpriv --reuid=nobody --regid=nogroup --clear-groups sysctl -q net.sovia.rendezvous=0; }
not_every_value() { ! sysctl -q net.sovia.rendezvous=3 && ! sysctl -q net.sovia.rendezvous=-1 && equal "$(sysctl -n net.sovia.rendezvous)" 2; }

# Nobody behind a router would be heard.
routed() {
	local answers
	ip route add 10.88.0.0/24 via "$(remote_of 4)" && ip route add fd88::/64 via "$(remote_of 6)" || return
	answers="$(socktool -4 connect 10.88.0.1 5000) $(socktool -6 connect fd88::1 5000)"
	ip route del 10.88.0.0/24
	ip route del fd88::/64
	equal "$answers" 'EHOSTUNREACH EHOSTUNREACH'
}

# ---- strangers ----

# From here on the other node's ports are a program's.
leave() { stop_server; there modprobe -r sovia && reload; }
said_there() { # WANTED STRANGER...
	local wanted=$1 answer
	shift
	answer=$(there stranger "$@" 2>&1)
	echo "$* : $answer"
	[ "$answer" = "$wanted" ]
}
answers() { # WANTED [OPTION...]
	local v wanted=$1
	shift
	for v in 4 6; do
		said_there "$wanted" hello "$(remote_of $v)" "$(local_of $v)" "$@" || return
	done
}
claims() { said_there NAT hello "$(remote_of 4)" "$(local_of 4)" --claim 10.77.0.77; }
garbled() { # WANTED KIND...
	local kind v wanted=$1
	shift
	for kind; do
		for v in 4 6; do
			said_there "$wanted" garbage "$(remote_of $v)" "$(local_of $v)" "$kind" || return
		done
	done
	eventually nothing_left
}
nothing_left() { [ "$(object anchors)" = 0 ] || { cat $OBJECTS; return 1; }; }

# Whoever is there already stays, whatever another one says.
stays() {
	local status
	there "setsid stranger hello $(remote_of 4) $(local_of 4) --hold /tmp/hold >/dev/null 2>&1 &"
	eventually there test -e /tmp/hold || return
	there 'ip addr add 10.77.0.9/24 dev "$SOVIA_NETDEV"'
	said_there NAT hello 10.77.0.9 "$(local_of 4)" --claim "$(remote_of 4)"
	status=$?
	anchors_are 1 || status=1
	there 'ip addr del 10.77.0.9/24 dev "$SOVIA_NETDEV"; rm -f /tmp/hold'
	return $status
}

few_of_a_source() {
	local addresses=() i got
	for i in {1..12}; do
		addresses+=("fd77::a$i")
	done
	there "for a in ${addresses[*]}; do ip -6 addr add \$a/64 dev \"\$SOVIA_NETDEV\" nodad; done"
	got=$(there "stranger flood --wait 2 $(local_of 6) ${addresses[*]} 2>/tmp/flood"; there cat /tmp/flood >&2)
	there "for a in ${addresses[*]}; do ip -6 addr del \$a/64 dev \"\$SOVIA_NETDEV\"; done"
	echo "stayed: $got"
	equal "$got" 4 && eventually nothing_left
}

contained() { # WANTED
	local answer
	answer=$(there "ip netns exec box stranger hello 10.66.0.2 $(local_of 4) --claim $(remote_of 4) --wait 3")
	echo "$answer"
	[ "$answer" = "$1" ]
}
with_hop_limit() {
	there 'nft "add chain ip box mangle { type filter hook postrouting priority -150; }" &&
		nft add rule ip box mangle ip ttl set 255' && contained OK
	local status=$?
	no_container
	return $status
}

limit 120
check 'a server on the peer'					start_server
check 'the ports are nobody else'\''s'				ports_are_taken
check 'one introduction for each pair of addresses'		introduced_once
check 'connections need no anchor'				without_anchor
check 'nor does its recovery'					lane_dies_without_anchor
check 'the other direction'					other_direction
check 'only one direction'					one_direction
check '... also after the anchor'				direction_again
check '... which the other node has not noticed'		anchor_lost_here
check 'both directions at once'					both_directions
check 'forged segments end nothing'				forged 700
check 'the peer loads the module again'				peer_reloads
check 'this node does'						we_reload
check 'both do'							both_reload
check_cut 'the peer reboots'					peer_reboots
check 'a recovery takes twenty seconds at most'		recovery_timeout 20
check 'another address of the peer'				address_is_served
TARGET=$MOVING check 'it goes and comes back'		watched alive bounce --
check '... also with IPv6'					bounce_v6
TARGET=$MOVING check 'it goes for good'			watched ETIMEDOUT leaves_for_good --
check 'it comes again'						address_is_served
check 'it goes to another host'					moves
check 'a recovery takes a minute'				recovery_timeout 60
check 'the peer does not answer'				refused_there 0
check 'it asks only'						asks_only
check '... and does not answer then'				refused_there 1
check 'it answers again'						answers_again
check 'this node does not ask'					off_here
check 'nobody behind a router is asked'			routed
check 'users cannot set that'					not_by_users
check 'nor anybody to something else'				not_every_value
check 'the ports are given back'				ports_are_free
check 'ports that it holds stay its own'			held_ports
check 'ports that users could have are not used'		unsafe_ports
check 'the peer leaves'						leave
check 'another implementation is welcome'			answers OK
check 'a version of its own is not'				answers NO_VERSION --version 4
check 'nor another address than its own'			claims
check 'nor another port'					answers ECONNRESET --port 700
check 'nor another hop limit'					answers timeout --ttl 254 --wait 3
check 'garbage ends the connection'				garbled reset text framing long short type ways answer ping half nothing twice
check 'somebody who is there stays'				stays
check 'few connections of a source wait'			few_of_a_source
if there modprobe -qa nft_masq nft_chain_nat; then
	check 'a container behind the peer'\''s address'		container
	check '... is not heard'				contained timeout
	check '... unless its host wants it to be'		with_hop_limit
else
	skip 'a container behind the peer'\''s address' 'no NAT in this kernel'
fi
check 'all is as before'					server_again
check '... and connects'					ask_both
finish
