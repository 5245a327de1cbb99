#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Floods of unread data while other programs leave little memory: no process is killed, allocations that fail are
# retried or refused, connections with little traffic continue, and all memory is freed.
#
# vm: --wire --mem 256 --timeout 500 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

PATH=$PWD/lib:$PATH
WORK=$(mktemp -d)
LIMITS=/sys/kernel/debug/sovia/limits
# MiB: the memory limit for messages of all sockets, and what the programs below need.
LEFT=$(($(awk '$1 == "memory" { print $4 }' $LIMITS) * $(getconf PAGESIZE) / 1024 / 1024 + 26))

little_left() {
	eat_memory $LEFT "$WORK/eat_memory" >"$WORK/hogged" 2>&1 &
	eventually test -e "$WORK/eat_memory" || { cat "$WORK/hogged"; return 1; }
	grep MemAvailable /proc/meminfo
}

enough_again() { rm "$WORK/eat_memory" && eventually hog_gone; }
hog_gone() { ! pgrep -x eat_memory >/dev/null; }

# An unrelated connection with little traffic, for as long as "$@" takes.
beside() { # HOST COMMAND...
	local host=$1 watcher status
	shift
	socktool watch "$host" 5004 "$WORK/watch" 0.2 >"$WORK/watched" 2>&1 &
	watcher=$!
	eventually test -e "$WORK/watch" || { cat "$WORK/watched"; return 1; }
	"$@"
	status=$?
	rm "$WORK/watch"
	wait $watcher
	cat "$WORK/watched"
	[ $status = 0 ] && grep -qx alive "$WORK/watched"
}

# COUNT connections with unread data; whatever is delivered has been compared.
flood() { # HOST COUNT
	fill_buffers "$@" >"$WORK/press" || return
	cat "$WORK/press" $LIMITS
	[ "$(sed -n 's/.* whole \([0-9]*\) .*/\1/p' "$WORK/press")" -gt 0 ]
}

echo_server() {
	setsid socktool echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
no_echo_server() { rm "$WORK/echo" && eventually no_socktool; }
no_socktool() { ! pgrep -x socktool >/dev/null; }

measure() { leakcheck measure 60 >"$WORK/$1"; }
# How often somebody had to look for memory that can be freed.
scarce() { awk '/^(allocstall|pgscan_direct|pgscan_kswapd)/ { sum += $2 } END { print sum }' /proc/vmstat; }
was_scarce() { echo "$(<"$WORK/scarce"), now $(scarce)" && [ "$(scarce)" -gt "$(<"$WORK/scarce")" ]; }

no_oom() { ! dmesg | grep -iE 'out of memory|oom-kill|page allocation failure'; }

limit 200
check 'an echo server' echo_server
check 'a connection within the host' socktool ask 127.0.0.1 5004
check 'one over the wire' socktool ask node-b 5004
check 'it ends' no_echo_server
check 'measure resources' measure before
check 'the echo server again' echo_server
check 'little memory is left' little_left
scarce >"$WORK/scarce"
check 'a flood within the host, and another connection works' beside node-b flood 127.0.0.1 300
check 'a flood over the wire, and another connection works' beside 127.0.0.1 flood node-b 200
check 'the OOM killer has not run' no_oom
if [ -n "$(scarce)" ]; then check 'memory was scarce meanwhile' was_scarce; else skip 'memory was scarce meanwhile' 'this kernel does not count it'; fi
echo "# $output"
check 'memory is freed again' enough_again
check 'a connection as before' socktool ask node-b 5004
check 'the server ends' no_echo_server
check 'measure resources again' measure after
check 'everything has been freed' leakcheck compare "$WORK/before" "$WORK/after"
finish
