#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Allocation failures: every allocation of every socket call fails once, and then some of those
# in softirqs, also soft RoCE's, while data flows.  Failed calls return an error, no data is
# lost, nothing leaks.
#
#     one guest:	127.0.0.1 - 127.0.0.2 over loop		10.78.0.1 - 10.78.0.2 over verbs
#
# The calls are made twice: connections within the host have no lane, unless loop_lane says so.
#
# vm: --smp 1 --kernel debug --append "kunit.enable=0 sovia.fallback=0" --leaks --timeout 1200
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/roce.sh source-path=SCRIPTDIR
. lib/roce.sh
# shellcheck source=lib/failslab.sh source-path=SCRIPTDIR
. lib/failslab.sh

reload() { # KIND PARAMETER...
	eventually modprobe -r sovia && modprobe sovia "${@:2}" && equal "$(lib/loop_kind)" "$1"
}

transfers() { sovia-run lib/transfer_errors "$1" "$2" 2; }

# Both ends of all connections of both rounds have all data.
all_whole() { equal "$(transfers "$@" | tee /dev/stderr)" 'whole 24'; }

# Each connection needs a new link.
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

# No page at all for one call; the buffer has the same size afterwards.
no_pages() {
	echo Y >$DEBUG/fail_page_alloc/task-filter
	echo $TIMES >$DEBUG/fail_page_alloc/times
	echo 100 >$DEBUG/fail_page_alloc/probability
	sovia-run python3 - <<-'END'
	import socket
	def fail(yes):
	    with open("/proc/self/make-it-fail", "w") as file:
	        file.write(str(int(yes)))
	def size():
	    return near.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
	listener = socket.create_server(("127.0.0.1", 0))
	near, data, sent = socket.create_connection(listener.getsockname()), bytes(200_000), 0
	far, before = listener.accept()[0], size()
	fail(True)
	try:
	    sent = near.send(data, socket.MSG_DONTWAIT)
	except OSError as error:
	    print(error)
	fail(False)
	print(f"sent {sent}, buffer {before}, then {size()}")
	near.sendall(data[sent:])
	assert len(far.recv(len(data), socket.MSG_WAITALL)) == len(data) and sent < len(data) and size() >= before
	END
	local status=$?
	echo 0 >$DEBUG/fail_page_alloc/probability
	echo N >$DEBUG/fail_page_alloc/task-filter
	echo "pages that were refused: $((TIMES - $(<$DEBUG/fail_page_alloc/times)))"
	[ "$(<$DEBUG/fail_page_alloc/times)" -lt $TIMES ] && return $status
}

no_sockets() { [ "$(wc -l </proc/net/sovia/sock)" = 0 ] || { cat /proc/net/sovia/sock; return 1; }; }

limit 100
check 'failures on demand'		failures
for kind in direct lane; do
	way=''; [ $kind = direct ] || way=loop_lane=1
	check "reloaded${way:+ with $way}"	reload "$kind" $way
	for calls in 'socket socket6 bind options names poll' 'listen connect connect_first link accept' \
		'send send_some send_cut send_small send_urgent sendfile' 'recv peek splice' 'shutdown close close_unread'; do
		# shellcheck disable=SC2086 # several words
		check "without memory: $calls${way:+, $way}"	lib/fail_nth $calls
		echo "# ${output//$'\n'/, }"
	done
done
check 'no page for a send'		no_pages
echo "# ${output//$'\n'/, }"
check 'no socket is left'		eventually no_sockets
check 'links to a hundred addresses'	while_scarce 10 strangers
check 'an RDMA device'			roce_device 10.78.0.1/24 10.78.0.2/24
# When soft RoCE has no memory for a packet, its queue pair fails.
while read -r every here there; do
	check "transfers while memory is scarce, $here"	while_scarce "$every" transfers "$here" "$there"
	echo "# ${output//$'\n'/, }"
	check "transfers after that, $here"		all_whole "$here" "$there"
done <<-END
	100 127.0.0.1 127.0.0.2
	500 10.78.0.1 10.78.0.2
END
check 'the last ones went over verbs'	[ "$(sovia stat value verbs_tx_bytes)" -gt 100000 ]
check 'no socket is left after that'	eventually no_sockets
finish
