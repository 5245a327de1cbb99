#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A hundred busy connections beside thousands of idle ones: a message costs as many instructions as without those.
#
#	many_busy.sh [CONNECTIONS]
#
# vm: --wire --icount --mem 1536 --timeout 1400 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
MANY=${1:-10000}
# Both ends of each are here, so that they hold as much as 20,000 connections of a node in a pair.
HOST=node-b
FILE=$(mktemp -u)

serve() { # PORT [--tcp]
	setsid idle_conns "${@:2}" serve "$FILE.$1" "$1" >/dev/null 2>&1 &
	eventually test -e "$FILE.$1"
}
# The clock counts instructions.
field() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$FILE.out"; }
within() { # PERCENT COMMAND...
	"${@:2}" >"$FILE.out" || return
	cat "$FILE.out"
	[ $(($(field among) * 100)) -le $(($(field alone) * (100 + $1))) ]
}
none_left() { equal "$(cut -d' ' -f1 "$FILE.$1")" 0; }
stop() { rm "$FILE".5[0-9]* && eventually rmmod sovia; }

limit 900
ulimit -n 200000
echo '1024 65535' >/proc/sys/net/ipv4/ip_local_port_range
check 'servers' eval 'serve 5701 && serve 5702 --tcp'
idle_conns --tcp busy $HOST "$MANY" 5702 | sed 's/^/# TCP: /'
check "100 connections among $MANY: a message costs at most 5 % more" within 5 idle_conns busy $HOST "$MANY" 5701
check 'none is left' eventually none_left 5701
check 'the module can be unloaded' stop
finish
