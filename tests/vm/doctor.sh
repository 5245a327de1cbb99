#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sovia doctor: with everything in order, and with each thing broken that it knows of.
#
# vm: --pair --append kunit.enable=0
# lab: it breaks both nodes
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

peer4=$(address 4 "$SOVIA_PEER")
peer6=$(address 6 "$SOVIA_PEER")

# What has been learnt before is forgotten, and so are links that no connection uses.
forget() { sovia link flush; sovia peer flush; sleep 1; }
healthy() { sovia doctor "$@"; }
# Something is broken, and a line of the answer says CHECK and a word of why.
broken() { # CHECK PATTERN ARGUMENT...
	local answer
	forget
	answer=$(sovia doctor "${@:3}")
	[ $? = 1 ] || { echo "$answer"; return 1; }
	grep -E "^FAIL +$1 " <<<"$answer" | grep -qi -- "$2" || { echo "$answer"; return 1; }
}
noted() { # CHECK PATTERN
	local answer
	answer=$(sovia doctor)
	grep -E "^note +$1 " <<<"$answer" | grep -qi -- "$2" || { echo "$answer"; return 1; }
}

check 'nothing is broken here'			healthy
check '... nor with the peer'			healthy "$peer4"
check '... by IPv6'				healthy "$peer6"
check '... by its link-local address'		healthy "$(there "ip -6 -o address show dev $SOVIA_NETDEV scope link" | awk '{ sub("/.*", "", $4); print $4 }')%$SOVIA_NETDEV"
check '... nor within the host'			healthy 127.0.0.1
check 'it says which way'			said 'by loop'
check 'as JSON'					eval 'sovia -j doctor "$peer4" | python3 -c "import json, sys; assert all(o[\"result\"] != \"FAIL\" for o in json.load(sys.stdin))"'
check 'a user may ask'				setpriv --reuid=nobody --regid=nogroup --clear-groups sovia doctor "$peer4"
check 'a port without AF_SOVIA'			eval 'sovia doctor "$peer4" port 22 | grep -q "no AF_SOVIA listener at port 22"'
deny 'a name without an address'			sovia doctor no-such-node.invalid
check '... says so'				said 'no-such-node.invalid: '
check 'a name'					healthy "$SOVIA_PEER"
check '... its address is shown'		said "to .* from .*, interface $SOVIA_NETDEV"

modprobe -r sovia_diag 2>/dev/null
modprobe -r sovia
check 'a module that is not loaded'		eval 'sovia doctor | grep -A 1 "^FAIL *module .*not loaded" | grep "systemctl enable --now sovia"'
deny '... it does not load it'			test -e /sys/module/sovia
check 'a kernel that has none'			eval 'MODPROBE_OPTIONS="-S 0.0" sovia doctor | grep "^FAIL *module .*there is none"'
check 'it is loaded'				modprobe sovia

sovia set rendezvous 0
check 'no rendezvous'				broken rendezvous 'no links' "$peer4"
sovia set rendezvous 1
check 'one that only asks'			noted rendezvous 'does not answer'
sovia set rendezvous 2
echo 'out deny' | sovia rule replace
check 'a rule that denies'			broken rule denies "$peer4"
echo 'out only-tcp' | sovia rule replace
check 'a rule for TCP'				broken rule 'wants TCP' "$peer4"
sovia rule flush
check 'all is well again'			healthy "$peer4"

there 'sovia set rendezvous 0'
check 'the peer has no rendezvous'		broken peer 'nothing answers' "$peer4"
there 'modprobe -r sovia'
check 'the peer has no module'			broken peer 'nothing answers' "$peer4"
there 'modprobe sovia'
there 'nft add table ip t; nft add chain ip t c "{ type filter hook input priority 0; }"; nft add rule ip t c tcp dport 298 drop'
check 'a firewall there drops the question'	broken peer 'no answer from its TCP port' "$peer4"
check '... and says so there'			there 'sovia doctor | grep -q "note *firewall .*298 drop"'
there 'nft flush chain ip t c; nft add rule ip t c udp dport 4791 drop'
check 'a firewall there drops RDMA'		broken way 'RDMA does not work' "$peer4"
there 'nft delete table ip t'
there 'echo "in peer '"$(address 4 "$SOVIA_NODE")"' only-tcp" | sovia rule replace'
check 'the peer refuses this node'		broken peer "denied by the peer's rules" "$peer4"
there 'sovia rule flush'
forget
check 'all is well again'			healthy "$peer4"

delete_rdma
check 'no device'				broken device 'no RDMA device' "$peer4"
check '... for the address'			broken gid 'no RDMA device' "$peer4"
check '... how to have one for it'		eval 'sovia doctor "$peer4" | grep -q "mend: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev $SOVIA_NETDEV\$"'
check 'none is needed within the host'		eval 'sovia doctor 127.0.0.1 | grep -q "ok *connection"'
add_rdma
forget
check 'all is well again'			eventually healthy "$peer4"
ip link set "$SOVIA_NETDEV" mtu 900
check 'a small MTU'				eval 'sovia doctor "$peer4" | grep -q "^note *mtu .*900"'
ip link set "$SOVIA_NETDEV" mtu 1500
check 'no route'				broken route 'unreachable' 203.0.113.1
finish
