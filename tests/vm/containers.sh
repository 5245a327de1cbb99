#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Namespaces of one kernel that reach each other's port are joined in memory, others use TCP.
#
#	containers.sh [Y]	Y: over lanes
#
# vm: --timeout 600 --append "kunit.enable=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
export PYTHONPATH=$PWD/lib
WORK=$(mktemp -d)
OBJECTS=/sys/kernel/debug/sovia/objects
SIZE=100000
LANES=${1:-N}
# An echo server of AF_SOVIA in each, by family.
PORT4=5004 PORT6=5006
FLOW=(box a socktool -4 flow 10.1.0.2 "$PORT4")
# shellcheck source=lib/transfer.sh source-path=SCRIPTDIR
. lib/transfer.sh

# ip-netns(8) would hide debugfs.
box() { local name=$1; shift; nsenter --net="/run/netns/$name" "$@"; }
count() { box "$1" sovia stat value "$2"; }
object() { awk -v name="$1" '$1 == name { print $2 }' $OBJECTS; }

create() { # NAME
	ip netns add "$1" && ip -n "$1" link set lo up && box "$1" sysctl -qw net.sovia.rendezvous=2 net.sovia.fallback=1
}
configure() { # NAME IPv4 IPv6
	ip -n "$1" addr add "$2/24" dev eth0 && ip -n "$1" addr add "$3/64" dev eth0 nodad && ip -n "$1" link set eth0 up
}
serve() { # NAME
	box "$1" setsid socktool -4 echo $PORT4 "$WORK/$1-4" >/dev/null 2>&1 &
	box "$1" setsid socktool -6 echo $PORT6 "$WORK/$1-6" >/dev/null 2>&1 &
	eventually test -e "$WORK/$1-4" && eventually test -e "$WORK/$1-6"
}
joined_by_veth() {
	create a && create b && ip link add eth0 netns a type veth peer name eth0 netns b && configure a 10.1.0.1 fd01::1 &&
		configure b 10.1.0.2 fd01::2 && serve a && serve b
}
joined_by_bridge() {
	local number=1 name
	ip link add hub type bridge && ip link set hub up || return
	for name in c d e; do
		create $name && ip link add port-$name type veth peer name eth0 netns $name &&
			ip link set port-$name master hub up && configure $name 10.2.0.$number fd02::$number && serve $name || return
		number=$((number + 1))
	done
}
joined_by_macvlan() {
	local number=1 name
	ip link add below type dummy && ip link set below up || return
	for name in m n; do
		create $name && ip link add link below name eth0 netns $name type macvlan mode bridge &&
			configure $name 10.4.0.$number fd04::$number && serve $name || return
		number=$((number + 1))
	done
}

# What carries a connection: 254 is AF_SOVIA, 6 TCP.
kind() { # NAME HOST
	box "$1" python3 -c 'import socket, sovia, sys
s = sovia.socket()
s.connect((sys.argv[1], int(sys.argv[2])))
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))' "$2" $PORT4
}
kind_is() { equal "$(kind "$1" "$2")" "$3"; } # NAME HOST KIND

ask() { # NAME FAMILY HOST
	local name=PORT$2
	box "$1" socktool "-$2" ask "$3" "${!name}" $SIZE
}
# The bytes leave one namespace and reach the other, through memory.
in_memory() { # FROM TO FAMILY HOST
	local sent received
	sent=$(count "$1" loop_tx_bytes) received=$(count "$2" loop_rx_bytes)
	ask "$1" "$3" "$4" || return
	sent=$(($(count "$1" loop_tx_bytes) - sent)) received=$(($(count "$2" loop_rx_bytes) - received))
	echo "sent $sent, received $received"
	[ $sent -ge $SIZE ] && [ $received -ge $SIZE ] && equal "$(count "$1" verbs_tx_bytes)" 0
}
link_local() { ip -n "$1" -6 -o addr show dev eth0 scope link | awk '{ split($4, part, "/"); print part[1] }'; }
link_local_is_there() { [ -n "$(link_local "$1")" ] && ! ip -n "$1" addr show dev eth0 tentative | grep -q inet6; }
over_link_local() {
	eventually link_local_is_there a && eventually link_local_is_there b && in_memory a b 6 "$(link_local b)%eth0"
}
link_is() { # NAME ITS ADDRESS OTHER ONE WORDS
	local links
	links=$(box "$1" grep " ::ffff:$2 " /proc/net/sovia/link)
	echo "$links"
	equal "$(wc -l <<<"$links")" 1 && grep -q "^UP ::ffff:$2 ::ffff:$3 loop .*$4" <<<"$links"
}
sees_its_end() { link_is a 10.1.0.1 10.1.0.2 'out=1 in=0' && link_is b 10.1.0.2 10.1.0.1 'out=0 in=1'; }
introduced_once() {
	local before
	before=$(count a peer_up)
	ask a 4 10.1.0.2 && ask a 4 10.1.0.2 && equal "$(count a peer_up)" "$before"
}
sent() { box "$1" sed -n "s/^UP ::ffff:$2 .* sent=\([0-9]*\).*/\1/p" /proc/net/sovia/link; } # NAME ITS ADDRESS
# CONN, and perhaps a probe, unless lanes carry connections within the host.
socket_to_socket() {
	local messages
	messages=$(sent a 10.1.0.1)
	ask a 4 10.1.0.2 || return
	messages=$(($(sent a 10.1.0.1) - messages))
	echo "$messages messages"
	if [ "$LANES" = Y ]; then [ $messages -gt 3 ]; else [ $messages -le 3 ]; fi
}
both_ways() { in_memory b a 4 10.1.0.1 && in_memory a b 4 10.1.0.2; }
# All begin at once.
crossing() {
	local i
	for i in c:10.2.0.3 e:10.2.0.1 d:10.2.0.3 e:10.2.0.2 c:10.2.0.2 d:10.2.0.1; do ask "${i%:*}" 4 "${i#*:}" & done
	for i in $(jobs -p); do wait "$i" || return; done
}
programs() {
	local before
	before=$(count a loop_tx_bytes)
	box b sovia-run iperf3 -s -1 >/dev/null 2>&1 &
	eventually box b grep -q 'LISTEN.*:5201' /proc/net/sovia/sock && box a sovia-run iperf3 -c 10.1.0.2 -t 1 &&
		[ $(($(count a loop_tx_bytes) - before)) -gt 1000000 ] && wait $!
}

# ---- keys and netfilter ----

key() { printf '%032d' "$3" | box "$1" sovia key add "$2" 10.1.0.0/24 -; } # NAME ID BYTES
keys_of_both() {
	key a 7 1 && key b 7 1 && in_memory a b 4 10.1.0.2 && link_is a 10.1.0.1 10.1.0.2 'key=7 .*out=1 in=0' &&
		in_memory b a 4 10.1.0.1 && link_is b 10.1.0.2 10.1.0.1 'key=7 .*out=1 in=1'
}
another_key() {
	box b sovia key delete 7 && key b 7 2 && kind_is a 10.1.0.2 6 && forget b && kind_is b 10.1.0.1 6 &&
		equal "$(box a grep -c ' ::ffff:10.1.0.1 ' /proc/net/sovia/link)" 0
}
no_keys() { box a sovia key delete 7 && box b sovia key delete 7 && forget a && forget b && in_memory a b 4 10.1.0.2; }
rejected() {
	box b sysctl -qw net.sovia.netfilter=1 && kind_is a 10.1.0.2 254 &&
		box b nft "add table inet no; add chain inet no in { type filter hook input priority 0; };
			add rule inet no in tcp dport $PORT4 reject with tcp reset" && ! kind a 10.1.0.2 2>"$WORK/error" &&
		grep -q ConnectionRefusedError "$WORK/error"
	local status=$?
	box b nft delete table inet no
	kind_is a 10.1.0.2 254 && box b sysctl -qw net.sovia.netfilter=0 && return $status
}

# ---- what ends ----

lanes_break() { box a socktool break 5; }
address_bounces() {
	ip -n b addr del 10.1.0.2/24 dev eth0 && eventually recovering && sleep 1 && recovering &&
		ip -n b addr add 10.1.0.2/24 dev eth0
}
recovering() { box b grep -q 'RECOVERING.*1.0.2' /proc/net/sovia/link; }

# ---- TCP ----

forget() { box "$1" sysctl -qw net.sovia.fallback=1; }
without() {
	box b sysctl -qw net.sovia.rendezvous=0 && forget a && kind_is a 10.1.0.2 6 && forget b && kind_is b 10.1.0.1 6
	local status=$?
	box b sysctl -qw net.sovia.rendezvous=2 && forget a && return $status
}
mute() { box "$1" nft "add table inet mute; add chain inet mute in { type filter hook input priority 0; }; add rule inet mute in tcp dport 298 drop"; }
one_direction() { # m may not ask n
	mute n && kind_is m 10.4.0.2 6 && kind_is n 10.4.0.1 254 && kind_is m 10.4.0.2 6 && box n nft delete table inet mute &&
		forget m && kind_is m 10.4.0.2 254
}
translated() {
	ip -n d addr add 10.2.0.22/24 dev eth0 && ip -n e addr add 10.2.0.77/24 dev eth0 &&
		box e nft "add table ip nat; add chain ip nat out { type nat hook postrouting priority 100; };
			add rule ip nat out ip daddr 10.2.0.22 snat to 10.2.0.77" && kind_is e 10.2.0.22 6 &&
		box d cat /proc/net/sovia/link && equal "$(box d grep -c '10.2.0.22' /proc/net/sovia/link)" 0
}
# The same addresses once more: nobody of those.
same_addresses() {
	create f && create g && ip link add eth0 netns f type veth peer name eth0 netns g && configure f 10.1.0.1 fd01::1 &&
		configure g 10.1.0.2 fd01::2 && serve g && in_memory f g 4 10.1.0.2 && in_memory a b 4 10.1.0.2
}
# Whose address it is shows in nothing that the asker can see.
asked() { box s nft list chain inet seen "to$1" | awk '/packets/ { print ($3 > 0) }'; }
not_an_oracle() {
	ip netns add s && ip -n s link set lo up && box s sysctl -qw net.sovia.rendezvous=2 net.sovia.fallback=1 &&
		ip -n s link add eth0 type dummy && configure s 10.1.0.9 fd01::9 || return
	box s nft "add table inet seen; add chain inet seen to2; add rule inet seen to2 counter
		add chain inet seen to77; add rule inet seen to77 counter
		add chain inet seen out { type filter hook output priority 0; }
		add rule inet seen out ip daddr 10.1.0.2 tcp dport 298 jump to2
		add rule inet seen out ip daddr 10.1.0.77 tcp dport 298 jump to77" || return
	# b has the first, nobody the second; the device leads nowhere.
	ip -n s neigh add 10.1.0.2 lladdr 2:0:0:0:0:2 dev eth0 && ip -n s neigh add 10.1.0.77 lladdr 2:0:0:0:0:77 dev eth0 || return
	timeout 8 nsenter --net=/run/netns/s socktool connect 10.1.0.2 $PORT4
	timeout 8 nsenter --net=/run/netns/s socktool connect 10.1.0.77 $PORT4
	box s nft list table inet seen
	equal "$(asked 2) $(asked 77)" '1 1'
	local status=$?
	ip netns del s && return $status
}
# Only another namespace that may be of use has one ask: not a user's own.
asks() { # ADDRESS
	ip -n s neigh replace "$1" lladdr 2:0:0:0:0:2 dev eth0
	timeout 8 nsenter --net=/run/netns/s socktool connect "$1" $PORT4
	box s nft reset counters table inet seen | awk '/packets/ { print ($2 > 0) }'
}
answers() { "$@" ss -Htln | grep -q ':298 '; }
users_own() {
	local owner status mode
	mode=$(sysctl -n net.sovia.rendezvous)
	ip netns add s && ip -n s link set lo up && ip -n s link add eth0 type dummy && configure s 10.1.0.9 fd01::9 &&
		box s nft 'add table inet seen; add counter inet seen n; add chain inet seen out { type filter hook output priority 0; };
			add rule inet seen out tcp dport 298 counter name n' && sysctl -qw net.sovia.rendezvous=1 &&
		box s sysctl -qw net.sovia.rendezvous=1 net.sovia.fallback=1 || return
	setpriv --reuid=nobody --regid=nogroup --clear-groups unshare -Urn \
		sh -c 'echo 2 >/proc/sys/net/sovia/rendezvous && exec sleep 1000' &
	owner=$!
	# the namespace's first socket
	asks 10.1.0.4 >/dev/null
	eventually answers nsenter -t $owner -n && equal "$(asks 10.1.0.2)" 0 &&
		ip netns add q && box q sysctl -qw net.sovia.rendezvous=2 && eventually answers box q && equal "$(asks 10.1.0.3)" 1
	status=$?
	kill $owner
	sysctl -qw net.sovia.rendezvous="$mode"
	ip netns del s
	ip netns del q
	return $status
}
not_a_router() {
	local before
	before=$(count a peer_up)
	ip -n a route add 10.2.0.0/24 via 10.1.0.2
	# nor does TCP reach it
	box a sysctl -qw net.ipv4.tcp_syn_retries=1
	kind a 10.2.0.2
	ip -n a route del 10.2.0.0/24
	# it has been looked at, and not asked
	dmesg | grep 'peer ::ffff:10.2.0.2 is behind a router' && equal "$(count a peer_up)" "$before"
}

# ---- again and again ----

once() { # NUMBER
	local client
	create x && ip link add outside type veth peer name eth0 netns x && ip addr add 10.3.0.1/24 dev outside &&
		ip link set outside up && configure x 10.3.0.2 fd03::2 || return
	box x setsid sovia-run socat -u TCP-LISTEN:5000 OPEN:/dev/null >/dev/null 2>&1 &
	eventually box x grep -q 'LISTEN.*:5000' /proc/net/sovia/sock || return
	sovia-run socat -u OPEN:/dev/zero TCP:10.3.0.2:5000 >/dev/null 2>&1 &
	client=$!
	eventually moving || return
	# what leaves first
	case $(($1 % 3)) in
	1) ip link del outside ;;
	2) kill -9 $client ;;
	esac
	ip netns pids x | xargs -r kill -9 2>/dev/null
	ip netns del x || return
	kill -9 $client
	wait $client
	eventually gone
}
moving() { [ "$(box x sovia stat value loop_rx_bytes)" -gt 100000 ]; }
gone() { ! ip link show dev outside >/dev/null 2>&1; }
again_and_again() { # TIMES
	local i
	sysctl -qw net.sovia.fallback=0
	echo 5 >/sys/module/sovia/parameters/recovery_timeout
	for ((i = 0; i < $1; i++)); do
		once $i || { echo "round $i"; return 1; }
	done
	sysctl -qw net.sovia.fallback=1
}
leave() {
	local name
	rm -f "$WORK"/*-[46]
	for name in a b c d e f g m n; do
		[ ! -e /run/netns/$name ] || ip netns del $name || return
	done
	sysctl -q net.sovia.rendezvous=0
	eventually nothing_left
}
nothing_left() {
	local name
	for name in sockets connections links anchors peers loop_vis requests; do
		[ "$(object $name)" = 0 ] || { cat $OBJECTS; return 1; }
	done
}

limit 240
modprobe -a veth bridge dummy macvlan
check 'a user who answers has nobody ask'	users_own
check 'two namespaces and a veth'		joined_by_veth
check 'IPv4'					in_memory a b 4 10.1.0.2
check 'each sees its own end'			sees_its_end
check 'IPv6'					in_memory a b 6 fd01::2
check 'link-local addresses'			over_link_local
check 'one introduction'			introduced_once
check 'from socket to socket'		socket_to_socket
check 'the other direction'			both_ways
check 'programs that know nothing of it'	programs
check 'both have a key'				keys_of_both
check '... not the same'			another_key
check '... none any more'			no_keys
if modprobe -qa nft_reject_inet; then
	check 'what netfilter rejects there'	rejected
else
	skip 'what netfilter rejects there' 'no reject in this kernel'
fi
check 'the lanes break'				transferring lanes_break
check 'an address goes and comes back'		transferring address_bounces
check 'connections after that'			both_ways
check 'three and a bridge'			joined_by_bridge
check 'both begin at once'			crossing
check 'the first two'				in_memory c d 4 10.2.0.2
check 'the others'				in_memory d e 6 fd02::3
check 'the same addresses elsewhere'		same_addresses
check 'who is behind a router is not asked'	not_a_router
check 'who has an address is not told'		not_an_oracle
check 'a namespace without rendezvous'		without
check '... has it again'			kind_is a 10.1.0.2 254
if modprobe -qa nft_chain_nat; then
	check 'nor who has another address'	translated
else
	skip 'nor who has another address' 'no NAT in this kernel'
fi
check 'macvlan'					joined_by_macvlan
check 'who may not ask uses TCP'		one_direction
check '... as well'				in_memory m n 4 10.4.0.2
check 'namespaces end, with traffic'		again_and_again 3
check 'nothing is left'				leave
check 'and the module can be unloaded'		modprobe -r sovia
finish
