#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers with many concurrent clients: epoll, sendfile, persistent and short
# connections, forked workers and background saves.
#
# vm: --pair --timeout 600
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh
# shellcheck source=lib/servers.sh source-path=SCRIPTDIR
. lib/servers.sh

# --- redis ---

cli() { sovia-run redis-cli -h "$SOVIA_PEER" -p 7100 "$@"; }

# The figures of the benchmark are not checked: it must complete all requests.
benchmark() { # ARGUMENT...
	sovia-run redis-benchmark -h "$SOVIA_PEER" -p 7100 --csv "$@" >$WORK/benchmark || return
	cat $WORK/benchmark
	awk -F'"' 'NR > 1 && $4 > 0 { good++ } END { exit !(good == NR - 1 && NR > 1) }' $WORK/benchmark
}

fill() {
	seq 20000 | sed 's/.*/SET key:& value-&/' | sovia-run redis-cli -h "$SOVIA_PEER" -p 7100 --pipe | grep 'errors: 0, replies: 20000' || return
	head -c 5000000 /dev/urandom >$WORK/blob
	equal "$(cli -x SET blob <$WORK/blob)" OK
}

holds() { # the data that fill has stored
	equal "$(cli GET key:12345)" value-12345 || return
	equal "$(cli DBSIZE)" 20001 || return
	cli --raw GET blob | head -c 5000000 | cmp - $WORK/blob
}

restarted() {
	equal "$(cli SAVE)" OK && there stop redis && there start_redis
}

# Two clients and the server: one receives what the other publishes.
publish() {
	timeout 30 sovia-run redis-cli -h "$SOVIA_PEER" -p 7100 SUBSCRIBE news >$WORK/news &
	eventually hears_somebody || return
	eventually grep -qx 'hot off' $WORK/news
}
hears_somebody() { [ "$(cli PUBLISH news 'hot off')" = 1 ]; }

# A second redis on this node replicates the first.
replica() {
	start replica redis-server --port 7101 --protected-mode no --dir $WORK --save '' --dbfilename replica.rdb \
		--replicaof "$SOVIA_PEER" 7100
	listening 7101 replica
}
replicated() {
	eventually replica_has 20001 || { tail $WORK/replica.log; return 1; }
	equal "$(cli SET late word)" OK || return
	eventually replica_has 20002
}
replica_has() { [ "$(sovia-run redis-cli -p 7101 DBSIZE)" = "$1" ]; }

redis() {
	check 'redis-server listens'			there start_redis
	check 'redis-benchmark'				over_link 100000 100000 benchmark -t ping,set,get,lpush,lrange_100 -n 3000 -c 20
	check 'redis-benchmark with pipelines'		over_link 1000000 100000 benchmark -t set,get -n 20000 -c 10 -P 16 -d 100
	check 'redis-benchmark, large values'		over_link 6000000 6000000 benchmark -t set,get -n 100 -c 5 -d 65536
	check 'redis-benchmark, a connection each'	over_link 1000 1000 benchmark -t ping_mbulk -n 300 -c 10 -k 0
	check 'the database is emptied'			cli FLUSHALL
	check 'redis is filled'				over_link 5000000 0 fill
	check 'redis returns what was stored'		over_link 0 5000000 holds
	check 'redis saves and restarts'		restarted
	check 'redis returns what it saved'		over_link 0 5000000 holds
	check 'redis publishes'				publish
	check 'a replica starts'			replica
	check 'the replica follows'			replicated
}

# --- nginx ---

start_nginx_there() {
	there start_nginx || return
	there web_sums >$WORK/sums
}
web_sums() { (cd $WORK/www && sha256sum -- *); }

fetched() { # PORT SIZE...
	local port=$1 size
	shift
	mkdir -p $WORK/copy
	for size; do
		sovia-run curl -sSf -o "$WORK/copy/$size" "http://$SOVIA_PEER:$port/$size" || return
		grep " $size\$" $WORK/sums | (cd $WORK/copy && sha256sum -c --quiet) || return
	done
}

resumed() {
	head -c 543210 $WORK/copy/1000000 >$WORK/copy/part
	sovia-run curl -sSf -C - -o $WORK/copy/part http://"$SOVIA_PEER":7110/1000000 && cmp $WORK/copy/part $WORK/copy/1000000
}

# Connections that curl makes for two requests.
connects() { # PORT WANT
	sovia-run curl -sSf -o /dev/null -o /dev/null -w '%{num_connects}\n' "http://$SOVIA_PEER:$1/1" "http://$SOVIA_PEER:$1/1000" \
		>$WORK/connects || return
	equal "$(paste -sd' ' $WORK/connects)" "$2"
}

# wrk: requests were answered, all of them correctly, and no socket failed.
wrk_() { # PORT SIZE
	sovia-run wrk -t 2 -c 20 -d 4s --timeout 20s "http://$SOVIA_PEER:$1/$2" >$WORK/wrk || return
	cat $WORK/wrk
	awk '/requests in/ { requests = $1 } END { exit !(requests >= 20) }' $WORK/wrk && ! grep -E 'Socket errors|Non-2xx' $WORK/wrk
}

nginx_() {
	local port way=('sendfile, keepalive' 'sendfile, a connection each' 'read, keepalive' 'read, a connection each')
	check 'nginx listens'				start_nginx_there
	for port in 7110 7111 7112 7113; do
		check "files, ${way[port - 7110]}"	over_link 0 1000000 fetched $port 0 1 1000 16384 65537 1000000
		check "wrk, ${way[port - 7110]}"	over_link 10000 100000 wrk_ $port 1000
	done
	check 'curl keeps its connection'		connects 7110 '1 0'
	check '... or does not'				connects 7111 '1 1'
	check '100 MB with sendfile'			over_link 0 100000000 fetched 7110 100000000
	check 'from nginx through nginx'		over_link 0 1000000 fetched 7114 1 1000000
	check 'wrk of nothing'				over_link 10000 1000 wrk_ 7110 0
	check 'wrk of 64 kB'				over_link 1000 1000000 wrk_ 7110 65537
	check 'a part of a file'			over_link 0 456790 resumed
}

limit 120
redis
nginx_
finish
