#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A user keeps sockets locked whose turn it is to become TCP's, as many as there are workers and more
# (tests/fuzz/slow_pages.c).  Another user's connections are set up meanwhile.
#
# vm: --wire --smp 2 --timeout 300
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

PATH=$PWD/lib:$PATH
ROOT=$(realpath ../..)
WORK=$(mktemp -d)
# More than the workers of a queue, 512.
HELD=800
chmod 777 "$WORK"

build() { make -s -C "$ROOT/tests/fuzz" calls; }

as() { # UID COMMAND...
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

echo_server() {
	setsid socktool echo 5004 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}

hold() {
	sysctl -qw vm.unprivileged_userfaultfd=1 || return
	as 1234 "$ROOT/.build/fuzz/slow_pages" $HELD >"$WORK/held" 2>&1 &
	eventually grep -q held "$WORK/held"
	cat "$WORK/held"
	grep -qx "held $HELD" "$WORK/held"
}

ended() { grep -q failed "$WORK/held"; }
release() {
	pkill -x slow_pages && eventually ended
	cat "$WORK/held"
	grep -qx 'failed 0' "$WORK/held"
}

ask() { as 1235 socktool ask "$@"; }

# connect() that does not wait becomes TCP's by a work, as those of the other user.
asks_tcp() {
	as 1235 python3 -c '
import select, socket, sys
server = socket.create_server(("127.0.0.1", 0))
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, int(sys.argv[1]))
s.connect_ex(server.getsockname())
if not select.select([], [s], [], 20)[1]:
	sys.exit("no answer")
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
sys.exit(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) != socket.IPPROTO_TCP)' 254
}

sockets() { awk '$1 == "SOVIA" { print $3 }' /proc/net/protocols; }
no_sockets() { [ "$(sockets)" = 0 ]; }

check 'the program builds'			build
check 'an echo server'				echo_server
check "sockets are kept locked"			hold
check 'a connection over a new link'		ask node-b 5004 100000
check 'one within the host'			ask 127.0.0.1 5004 100000
check 'one that becomes TCP'"'"'s'			asks_tcp
check 'the pages come, and all connect'		release
check 'the server ends'				rm "$WORK/echo"
check 'no socket is left'			eventually no_sockets
finish
