#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that measure TCP measure AF_SOVIA.  What they find is not judged
# here, but that they come to an end, and that both ends agree on the bytes.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

SIZE=5000000
# The receiver of iperf3 stops when the sender says so, not at the end of the data.
MOST=$((SIZE / 2))

# --- iperf3 ---

# What iperf3 itself says of all streams.
iperf() { # STREAMS ARGUMENT...
	sovia-run iperf3 -c node-b -p 7200 -J -P "$@" >$WORK/iperf.json || { grep error $WORK/iperf.json; return 1; }
	python3 - "$1" <<-'END'
	import json, sys
	with open("/tmp/work/iperf.json") as file:
	    end = json.load(file)["end"]
	print({name: end[name]["bytes"] for name in end if name.startswith("sum_")})
	ways = [""] + (["_bidir_reverse"] if "sum_sent_bidir_reverse" in end else [])
	assert len(end["streams"]) == int(sys.argv[1]) * len(ways), len(end["streams"])
	for way in ways:
	    assert 0 < end["sum_received" + way]["bytes"] <= end["sum_sent" + way]["bytes"]
	END
}

iperf3s() {
	there start iperf3 iperf3 -s -p 7200
	check 'iperf3 -s listens'		there listening 7200 iperf3
	check 'iperf3'				over_verbs $MOST 0 iperf 1 -n $SIZE
	check 'iperf3 -R'			over_verbs 0 $MOST iperf 1 -n $SIZE -R
	check 'iperf3 -P 8'			over_verbs $MOST 0 iperf 8 -n $SIZE
	check 'iperf3 -P 8 -R'			over_verbs 0 $MOST iperf 8 -n $SIZE -R
	check 'iperf3 --bidir'			over_verbs 100000 100000 iperf 1 -t 3 --bidir
	check 'iperf3 --bidir -P 4'		over_verbs 100000 100000 iperf 4 -t 3 --bidir
	check 'iperf3 in small pieces'		over_verbs 500000 0 iperf 1 -n 1000000 -l 100 -N
	check 'iperf3 with a rate'		over_verbs 100000 0 iperf 1 -t 2 -b 2M
	check 'iperf3 with sendfile'		over_verbs $MOST 0 iperf 1 -n $SIZE -Z
	check 'iperf3 -6'			over_verbs $MOST 0 iperf 1 -n $SIZE -6
}

# --- sockperf ---

# Every message is answered: none dropped, doubled or out of order.
sockperf_() { # MODE ARGUMENT...
	# it does not know names
	sovia-run sockperf "$1" --tcp -i "$(getent ahostsv4 node-b | awk '{ print $1; exit }')" -p 7210 -t 2 "${@:2}" >$WORK/sockperf || { tail -n 30 $WORK/sockperf; return 1; }
	tail -n 30 $WORK/sockperf
	case $1 in
	throughput) grep -q 'BandWidth is' $WORK/sockperf ;;
	*) grep -q '# dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' $WORK/sockperf ;;
	esac
}

sockperfs() {
	there start sockperf sockperf server --tcp -i 0.0.0.0 -p 7210
	check 'sockperf server listens'		there listening 7210 sockperf
	check 'sockperf ping-pong'		over_verbs 1000 1000 sockperf_ ping-pong
	check 'sockperf ping-pong, 8 kB'	over_verbs 8000 8000 sockperf_ ping-pong -m 8000
	check 'sockperf under-load'		over_verbs 1000 1000 sockperf_ under-load --mps 100 --reply-every 1
	check 'sockperf throughput'		over_verbs 100000 0 sockperf_ throughput -m 1400
}

# --- qperf ---

qperf_() { # TEST...
	sovia-run qperf node-b -lp 7220 -ip 7221 -t 2 "$@" >$WORK/qperf
	local status=$?
	cat $WORK/qperf
	[ $status = 0 ] && grep -qE '(bw|latency) += +[0-9]' $WORK/qperf
}

qperfs() {
	there start qperf qperf -lp 7220
	check 'qperf listens'			there listening 7220 qperf
	check 'qperf tcp_bw'			over_verbs 1000000 0 qperf_ tcp_bw
	check 'qperf tcp_bw, small messages'	over_verbs 1000 0 qperf_ -m 64 tcp_bw
	check 'qperf tcp_lat'			over_verbs 100 100 qperf_ tcp_lat
}

limit 90
iperf3s
sockperfs
qperfs
finish
