# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# For scripts on one node of a pair that have sourced tap.sh from their own directory.
#
# The other node is reached by on-peer, in the lab or elsewhere; the environment describes both:
#
#     SOVIA_NODE, SOVIA_PEER    names of this node and the other one, with IPv4 and IPv6 addresses
#     SOVIA_NETDEV              the network interface under test
#     SOVIA_RDMA, SOVIA_DEVICE  its RDMA device, and of which kind that is: rxe, siw, or hw
#     SOVIA_LINK                what links go over: verbs, or clan, memory that both share
#     SOVIA_CUT                 "yes", or why the network cannot be cut
#
# TARGET, if set, is another address of that node for watched() and kind_is().

HERE=$PWD
: "${SOVIA_LINK:=verbs}"
PATH=$HERE/lib:$PATH
WORK=$(mktemp -d)
FLOW=(socktool flow "$SOVIA_PEER" 5004)
# shellcheck source=lib/transfer.sh
. lib/transfer.sh

# Runs "$@" on the other node, a shell command if it is one argument; functions, PATH
# and $WORK are those of this node.
there() {
	local command=$1
	[ $# = 1 ] || command=${*@Q}
	on-peer "$(declare -f; declare -p HERE WORK SLOW PROGRAMS 2>/dev/null); mkdir -p $WORK; $command"
}

address() { getent "ahostsv$1" "$2" | awk 'NR == 1 { print $1 }'; } # FAMILY NAME

delete_rdma() { rdma link del "$SOVIA_RDMA"; }
add_rdma() { rdma link add "$SOVIA_RDMA" type "$SOVIA_DEVICE" netdev "$SOVIA_NETDEV"; }

# QEMU's device of shared memory
memory_device() { basename "$(dirname "$(grep -l 0x1110 /sys/bus/pci/devices/*/device)")"; }
memory_driver() { echo /sys/bus/pci/drivers/sovia-clan; }
unbind() { memory_device >"$(memory_driver)/unbind"; }
bind() { memory_device >"$(memory_driver)/bind"; }

# How often nonsense in the shared memory has been found: a node's, or in who is present.  (The log is rate-limited: at least.)
# Of both nodes: while one leaves the other alone, which may be for minutes, the other has nothing to look at.
violations() {
	local count="dmesg | grep -c -e 'violates the protocol, ignored' -e 'another machine is node'"
	echo $(($(eval "$count") + $(there "$count")))
}
# Has nonsense written until it is found: an epoch that is overwritten first hides the rest for a while.
nonsense_is_found() { # VIOLATIONS HOW...
	local before=$1
	shift
	until [ "$(violations)" -gt "$before" ]; do
		echo "scribble 1 $*" >/run/host
		sleep 1
	done
}

delete_device() { if [ "$SOVIA_LINK" = clan ]; then unbind; else delete_rdma; fi; }
add_device() { if [ "$SOVIA_LINK" = clan ]; then bind; else add_rdma; fi; }

# Checks that recreate the device, or cut the network.
check_device() { if [ "$SOVIA_DEVICE" = hw ]; then skip "$1" 'the device is hardware'; else check "$@"; fi; }
check_cut() { if [ "$SOVIA_CUT" = yes ]; then check "$@"; else skip "$1" "$SOVIA_CUT"; fi; }

# siw connects to the peer with an uninterruptible connect() of TCP: the next attempt waits
# for it.
short_connects() {
	[ "$SOVIA_DEVICE" != siw ] || { echo 2 >/proc/sys/net/ipv4/tcp_syn_retries && there 'echo 2 >/proc/sys/net/ipv4/tcp_syn_retries'; }
}

# An echo server on the peer for the whole script.
start_server() {
	there 'rm -f /tmp/echo4 /tmp/echo6; for v in 4 6; do setsid socktool -$v echo 500$v /tmp/echo$v >/dev/null 2>&1 & done;
		for i in $(seq 100); do [ -e /tmp/echo4 ] && [ -e /tmp/echo6 ] && exit 0; sleep 0.1; done; exit 1'
}

# Of a connection to the echo server there.
kind_is() { # PROTOCOL, or the name of an error [FAMILY]
	local v=${2:-4}
	equal "$(PYTHONPATH=$HERE/lib python3 -c 'import errno, sovia, socket, sys
s = sovia.socket({"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[2]])
try:
    s.connect((sys.argv[1], 5000 + int(sys.argv[2])))
    print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
except OSError as error:
    print(errno.errorcode[error.errno])' "${TARGET:-$SOVIA_PEER}" "$v")" "$1"
}

stop_server() {
	there 'rm -f /tmp/echo4 /tmp/echo6; eventually no_echo'
}

# The command line of what there() runs has such words as well.
no_echo() { ! pgrep -f '^[^ ]*python3 .*socktool .*echo' >/dev/null; }

# No packets arrive for a time, and no device reports it: the cable between two
# switches is cut.
CUT='tc qdisc add dev "$SOVIA_NETDEV" clsact && tc filter add dev "$SOVIA_NETDEV" ingress matchall action drop'
MEND='tc qdisc del dev "$SOVIA_NETDEV" clsact'
# Shared memory has no cable, and is taken away instead.
[ "$SOVIA_LINK" = verbs ] || CUT=delete_device MEND=add_device
wire_cut() { # SECONDS
	there "{ sleep 0.2; $CUT; sleep $1; $MEND; } >/dev/null 2>&1 &" || return
	sleep 0.2
	eval "$CUT" || return
	sleep "$1"
	eval "$MEND"
}


# The result of a connection with these options while the command runs.
watched() { # WANTED COMMAND... -- OPTION...
	local wanted=$1 command=() answer watcher
	shift
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	socktool watch "${TARGET:-$SOVIA_PEER}" 5004 "$WORK/watch" "$@" >"$WORK/answer" 2>&1 &
	watcher=$!
	eventually test -e "$WORK/watch" || { cat "$WORK/answer"; return 1; }
	"${command[@]}" || return
	# an error has been reported by now; otherwise it has to be alive
	rm "$WORK/watch"
	wait $watcher
	answer=$(cat "$WORK/answer")
	echo "$answer"
	[ "$answer" = "$wanted" ]
}

# A container of the peer, masqueraded by its host: it has the host's address, and may have the port, but its packets
# have made one hop more.  The host's root may mend that, and is the peer anyway.
container() {
	there 'ip netns add box && ip link add box0 type veth peer name box1 netns box && ip addr add 10.66.0.1/24 dev box0 &&
		ip link set box0 up && ip -n box addr add 10.66.0.2/24 dev box1 && ip -n box link set box1 up &&
		ip -n box route add default via 10.66.0.1 && echo 1 >/proc/sys/net/ipv4/ip_forward &&
		nft add table ip box && nft "add chain ip box post { type nat hook postrouting priority 100; }" &&
		nft add rule ip box post ip saddr 10.66.0.2 masquerade'
}
no_container() { there 'nft delete table ip box; ip netns del box; echo 0 >/proc/sys/net/ipv4/ip_forward'; }
