#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Attempts to make, end or replace the links of two nodes that are in use, by those who may not: users of either node,
# a host that forges addresses, a container that its host masquerades.
#
#     attackers.sh [ATTEMPTS]      of each
#
# vm: --pair --timeout 3600 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# So many that a landing's slice has room for them (scripts/check --slice).
ATTEMPTS=${1:-2000}
IMPOSTOR=$HERE/../../.build/rogue_peer/impostor
# It has seven kinds of requests.
TIMES=$(((ATTEMPTS + 6) / 7))
USER_ONLY=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)

count() { sovia stat value "$1"; }
own() { address "$1" "$SOVIA_NODE"; }
peer() { address "$1" "$SOVIA_PEER"; }
anchors() { ss -Htn state established '( sport = :298 or dport = :298 )' | sort; }
known() {
	local name
	anchors | grep . || echo 'no anchor'
	for name in link_up link_down link_fail link_recover peer_up peer_join; do
		echo "$name $(count $name)"
	done
}

# While "$@" runs, a transfer goes on over the same link, and nothing else comes up or ends on either node.
unharmed() {
	local before
	before=$(known; there known)
	[[ $before != *'no anchor'* ]] && transferring "$@" && equal "$(known; there known)" "$before"
}

# The number of requests; none was granted.
requests() { # COMMAND...
	local asked bare
	asked=$("$@") || return
	read -r asked bare <<<"$asked"
	echo "$((asked + bare)) requests"
	[ $((asked + bare)) -ge "$ATTEMPTS" ]
}
# In the name of its node, from a port of the connection manager's.
by_user_there() { requests there "${USER_ONLY[*]} $IMPOSTOR ask $(peer "$1") $(own "$1") 0 $TIMES"; }
by_user_here() { requests "${USER_ONLY[@]}" "$IMPOSTOR" ask "$(own "$1")" "$(peer "$1")" 0 $TIMES; }
by_user_of_himself() { requests "${USER_ONLY[@]}" "$IMPOSTOR" ask "$(own "$1")" "$(own "$1")" 0 $TIMES; }
# From a reserved port, as root of a third host could in its own name.
by_root_there() { requests there "$IMPOSTOR ask $(peer "$1") $(own "$1") 600 $TIMES"; }

# Segments with the other end's address and port, to both ends of both anchors.
forge() {
	local count=$(((ATTEMPTS + 3) / 4)) own peer before
	own=$(own 4) peer=$(peer 4)
	before=$(segments_in)
	there forger "$peer" 298 "$own" 297 $count && there forger "$peer" 297 "$own" 298 $count || return
	[ $(($(segments_in) - before)) -ge $((2 * count)) ] || { echo 'they have not arrived'; return 1; }
	before=$(there segments_in)
	forger "$own" 297 "$peer" 298 $count && forger "$own" 298 "$peer" 297 $count || return
	[ $(($(there segments_in) - before)) -ge $((2 * count)) ] || { echo 'they have not arrived there'; return 1; }
}
segments_in() { awk '/^Tcp:/ && ++n == 2 { print $11 }' /proc/net/snmp; }

# Behind the peer's address, one hop further away.
masqueraded() { there "cat /proc/net/snmp" | awk '/^Ip:/ && ++n == 2 { print $7 }'; }
from_container() {
	local before after
	before=$(masqueraded)
	there "ip netns exec box $HERE/lib/forger 10.66.0.2 297 $(own 4) 298 $ATTEMPTS" || return
	after=$(masqueraded)
	echo "$((after - before)) packets forwarded"
	[ $((after - before)) -ge "$ATTEMPTS" ]
}

# Both directions are open, so that each end of two anchors or one is there to be attacked.
begin() {
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo" && start_server && socktool ask "$SOVIA_PEER" 5004 && socktool -6 ask "$SOVIA_PEER" 5006 &&
		there socktool ask "$SOVIA_NODE" 5014
}

limit 3000
check 'links, both ways'				begin
for v in 4 6; do
	check "users of the peer, IPv$v"		unharmed by_user_there $v
	check "users of this node, IPv$v"		unharmed by_user_here $v
	check "users of this node, of itself, IPv$v"	unharmed by_user_of_himself $v
	check "root, without the secret, IPv$v"		unharmed by_root_there $v
done
check 'forged segments'					unharmed forge
check 'a container of the peer'				container
check '... is masqueraded in vain'			unharmed from_container
check '... and ends'					no_container
finish
