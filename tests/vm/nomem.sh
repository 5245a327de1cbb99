#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No memory: every allocation of every socket call fails once, and then some of those
# of the bottom halves, soft RoCE's too, while data flows.  What fails says so, nothing is
# lost, nothing leaks.
#
#     one guest:	127.0.0.1 - 127.0.0.2 over loop		10.78.0.1 - 10.78.0.2 over verbs
#
# vm: --smp 1 --kernel debug --append kunit.enable=0 --leaks --timeout 800
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/roce.sh source-path=SCRIPTDIR
. lib/roce.sh
# shellcheck source=lib/failing.sh source-path=SCRIPTDIR
. lib/failing.sh

transfers() { sovia-run lib/hail "$1" "$2" 2; }

# Each of them needs a link that was not there.
strangers() {
	sovia-run python3 - <<-'END'
	import socket
	listener = socket.create_server(("0.0.0.0", 0))
	for last in range(1, 101):
	    with socket.create_connection((f"127.1.0.{last}", listener.getsockname()[1]), 60) as near:
	        far = listener.accept()[0]
	        near.sendall(b"%d" % last)
	        near.shutdown(socket.SHUT_WR)
	        assert far.recv(100) == b"%d" % last
	        far.close()
	END
}

no_sockets() { [ "$(wc -l </proc/net/sovia/sock)" = 0 ] || { cat /proc/net/sovia/sock; return 1; }; }

limit 100
check 'failures on demand'		failures
for calls in 'socket socket6 bind options names poll' 'listen connect connect_first link accept' \
	'send send_some send_cut send_small send_urgent sendfile' 'recv peek splice' 'shutdown close close_unread'; do
	# shellcheck disable=SC2086 # several words
	check "without memory: $calls"	lib/failnth $calls
	echo "# ${output//$'\n'/, }"
done
check 'no socket stays'			eventually no_sockets
check 'links to a hundred addresses'	while_scarce 10 strangers
check 'an RDMA device'			roce_device 10.78.0.1/24 10.78.0.2/24
# A packet that soft RoCE has no memory for is the end of its queue pair.
while read -r every here there; do
	check "transfers while memory is scarce, $here"	while_scarce "$every" transfers "$here" "$there"
	echo "# ${output//$'\n'/, }"
	check "transfers after that, $here"		transfers "$here" "$there"
done <<-END
	100 127.0.0.1 127.0.0.2
	500 10.78.0.1 10.78.0.2
END
check 'no socket stays after that'	eventually no_sockets
finish
