#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that measure TCP work over AF_SOVIA.  The figures are not checked,
# only that they complete, and that both ends agree on the bytes.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

SIZE=5000000

# --- iperf3 ---

# The bytes that its receivers report must be what the modules carried: they stop when the sender tells them, and
# not at the end of the data.
iperf() { # ARGUMENT...
	sovia-run iperf3 -c "$SOVIA_PEER" -p 7200 -J "$@" >$WORK/iperf.json || { grep error $WORK/iperf.json; return 1; }
	python3 - $WORK/iperf.json >$WORK/received <<-'END' || return
	import json, sys
	with open(sys.argv[1]) as file:
	    data = json.load(file)
	test, end = data["start"]["test_start"], data["end"]
	ways = [""] + (["_bidir_reverse"] if "sum_sent_bidir_reverse" in end else [])
	assert len(end["streams"]) == test["num_streams"] * len(ways), len(end["streams"])
	for way in ways:
	    assert 0 < end["sum_received" + way]["bytes"] <= end["sum_sent" + way]["bytes"]
	assert end["sum_sent"]["bytes"] >= test["bytes"]
	received = [end["sum_received" + way]["bytes"] for way in ways] + [0]
	print(*received[1::-1] if test["reverse"] else received[:2])
	END
	# shellcheck disable=SC2046 # two words
	moved $(cat $WORK/received)
}

congestion() { # NAME
	iperf -n $SIZE -C "$1" && grep "\"sender_tcp_congestion\":.*\"$1\"" $WORK/iperf.json
}

iperf3s() {
	there start iperf3 iperf3 -s -p 7200
	check 'iperf3 -s listens'		there listening 7200 iperf3
	check 'iperf3'				over_link 1 1 iperf -n $SIZE
	check 'iperf3 -R'			over_link 1 1 iperf -n $SIZE -R
	check 'iperf3 -P 8'			over_link 1 1 iperf -n $SIZE -P 8
	check 'iperf3 -P 8 -R'			over_link 1 1 iperf -n $SIZE -P 8 -R
	check 'iperf3 --bidir'			over_link 1 1 iperf -t 3 --bidir
	check 'iperf3 --bidir -P 4'		over_link 1 1 iperf -t 3 --bidir -P 4
	check 'iperf3 in small pieces'		over_link 1 1 iperf -n 1000000 -l 100 -N
	check 'iperf3 with a rate'		over_link 1 1 iperf -t 2 -b 2M
	check 'iperf3 with sendfile'		over_link 1 1 iperf -n $SIZE -Z
	check 'iperf3 -6'			over_link 1 1 iperf -n $SIZE -6
	check 'iperf3 -C cubic'			over_link 1 1 congestion cubic
	check 'iperf3 -C reno'			over_link 1 1 congestion reno
}

# --- sockperf ---

# Every message is answered: none dropped, duplicated or out of order.
sockperf_() { # MODE SIZE ARGUMENT...
	local messages
	# it does not resolve names
	sovia-run sockperf "$1" --tcp -i "$(address 4 "$SOVIA_PEER")" -p 7210 -t 2 -m "${@:2}" \
		>$WORK/sockperf || { tail -n 30 $WORK/sockperf; return 1; }
	tail -n 30 $WORK/sockperf
	if [ "$1" = throughput ]; then
		messages=$(sed -n 's/.*Total of \([0-9]*\) messages sent.*/\1/p' $WORK/sockperf)
		[ "$messages" -gt 0 ] && moved $((messages * $2)) 0
		return
	fi
	grep -q '# dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' $WORK/sockperf || return
	messages=$(sed -n 's/.*Total Run.*ReceivedMessages=\([0-9]*\).*/\1/p' $WORK/sockperf)
	[ "$messages" -gt 0 ] && moved $((messages * $2)) $((messages * $2))
}

sockperfs() {
	there start sockperf sockperf server --tcp -i 0.0.0.0 -p 7210
	check 'sockperf server listens'		there listening 7210 sockperf
	check 'sockperf ping-pong'		over_link 1 1 sockperf_ ping-pong 14
	check 'sockperf ping-pong, 8 kB'	over_link 1 1 sockperf_ ping-pong 8000
	check 'sockperf under-load'		over_link 1 1 sockperf_ under-load 14 --mps 100 --reply-every 1
	check 'sockperf throughput'		over_link 1 1 sockperf_ throughput 1400
}

# --- qperf ---

# The receiver's count: the server's for tcp_bw, that of both for tcp_lat.
qperf_() { # SIZE TEST
	local got
	sovia-run qperf "$SOVIA_PEER" -lp 7220 -ip 7221 -t 2 -m "$1" -vvs -uu "$2" >$WORK/qperf || { cat $WORK/qperf; return 1; }
	cat $WORK/qperf
	got=$(awk '$1 ~ /^(loc_)?recv_bytes$/ { print $3 }' $WORK/qperf)
	[ "$got" -gt 0 ] || return
	case $2 in
	tcp_bw) moved "$got" 0 ;;
	*) moved "$got" "$got" ;;
	esac
}

qperfs() {
	there start qperf qperf -lp 7220
	check 'qperf listens'			there listening 7220 qperf
	check 'qperf tcp_bw'			over_link 1 1 qperf_ 65536 tcp_bw
	check 'qperf tcp_bw, small messages'	over_link 1 1 qperf_ 64 tcp_bw
	check 'qperf tcp_lat'			over_link 1 1 qperf_ 1 tcp_lat
}

limit 90
iperf3s
sockperfs
qperfs
finish
