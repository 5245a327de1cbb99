#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# AF_SOVIA programs and nodes without it, or TCP programs, reach each other (Documentation/fallback.rst).
#
# vm: --pair --timeout 900
# lab: it unloads the module
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# The results of a script that prints TAP.
each() { # WHERE COMMAND...
	local where=$1 line
	shift
	output=$("$@" 2>&1)
	while read -r line; do
		case $line in
		'ok '*) report ok "$where: ${line#ok * - }" ;;
		'not ok '*) report 'not ok' "$where: ${line#not ok * - }" ;;
		esac
	done <<<"$output"
	grep -q '^1\.\.' <<<"$output" || report 'not ok' "$where: all checks have run"
}

serve() { setsid becomes_tcp serve "$WORK/tcp" >/dev/null 2>&1 & eventually test -e "$WORK/tcp"; }

each 'one node' beside
check 'a TCP server' serve
each 'one node' becomes_tcp localhost
check 'a TCP server on the other node' there "$(declare -f serve); serve"
each 'the node has the module' becomes_tcp "$SOVIA_PEER"
check 'the other node unloads the module' there 'rmmod sovia'
each 'the node has none' becomes_tcp "$SOVIA_PEER"
check 'the other node drops what it does not know' there 'nft add table inet silent &&
	nft "add chain inet silent in { type filter hook input priority 0; }" &&
	nft add rule inet silent in tcp dport 298 drop'
each 'the node does not answer' becomes_tcp "$SOVIA_PEER" IPv4
finish
