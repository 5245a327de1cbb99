#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# More servers: a cache, a proxy that splices, TLS around other protocols, a message
# broker, git, another web server, and stress-ng, which misuses sockets.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

SIZE=3000000

# The web server behind the proxies.
web() { # SIZE
	openssl rand -out $WORK/data "$1"
	start web python3 -m http.server -d $WORK --bind :: 7301
	listening 7301 web
}
web_there() { there web $SIZE && there sha256sum $WORK/data >$WORK/sum; }

fetched() { # CURL-ARGUMENT...
	sovia-run curl -sSf -o $WORK/data "$@" || return
	sha256sum -c --quiet $WORK/sum
}

# --- memcached ---

start_memcached() {
	start memcached memcached -u root -p 7300 -U 0 -t 4
	listening 7300 memcached
}

# Several clients at once, values up to the largest.
cache() {
	cat >$WORK/cache.py <<-'END'
	import random, socket, sys
	clients = [socket.create_connection((sys.argv[1], 7300), 30) for _ in range(20)]
	files = [client.makefile("rwb") for client in clients]
	values = [random.randbytes(size) for size in (0, 1, 1000, 100000, 1000000)]
	for number, file in enumerate(files):
	    value = values[number % len(values)]
	    file.write(b"set key%d 0 0 %d\r\n%b\r\n" % (number, len(value), value))
	    file.flush()
	assert all(file.readline() == b"STORED\r\n" for file in files)
	for number, file in enumerate(files):
	    value = values[(number + 1) % len(values)]
	    file.write(b"get key%d\r\n" % ((number + 1) % len(files)))
	    file.flush()
	    assert file.readline().endswith(b" %d\r\n" % len(value))
	    assert file.read(len(value)) == value
	    assert file.readline() + file.readline() == b"\r\nEND\r\n"
	END
	sovia-run python3 $WORK/cache.py "$SOVIA_PEER"
}

# --- haproxy ---

start_haproxy() {
	cat >$WORK/haproxy.conf <<-END
	defaults
		timeout connect 20s
		timeout client 60s
		timeout server 60s
	listen splicing
		bind 127.0.0.1:7310
		mode tcp
		option splice-request
		option splice-response
		server there $SOVIA_PEER:7301
	listen parsing
		bind 127.0.0.1:7311
		mode http
		server there $SOVIA_PEER:7301
	END
	start haproxy haproxy -db -f $WORK/haproxy.conf
	listening 7310 haproxy && listening 7311 haproxy
}

# --- stunnel ---

stunnel_conf() { # CLIENT ACCEPT CONNECT
	printf '%s\n' 'foreground = yes' 'pid =' '[tls]' "client = $1" "accept = $2" "connect = $3" "cert = $WORK/tls.pem"
}
start_stunnel() {
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=node -keyout $WORK/key.pem -out $WORK/cert.pem -days 10 2>/dev/null
	cat $WORK/key.pem $WORK/cert.pem >$WORK/tls.pem
	chmod 600 $WORK/tls.pem
	stunnel_conf "$@" >$WORK/stunnel.conf
	start stunnel stunnel $WORK/stunnel.conf
	listening "${2##*:}" stunnel
}

# --- mosquitto ---

start_mosquitto() {
	printf '%s\n' 'listener 7330' 'allow_anonymous true' 'user root' 'log_type subscribe' >$WORK/mosquitto.conf
	start mosquitto mosquitto -c $WORK/mosquitto.conf
	listening 7330 mosquitto
}
message() {
	timeout 40 sovia-run mosquitto_sub -h "$SOVIA_PEER" -p 7330 -t news -q 1 -C 1 -N >$WORK/news &
	eventually there subscribed || return
	sovia-run mosquitto_pub -h "$SOVIA_PEER" -p 7330 -t news -q 1 -f $WORK/data || return
	wait $!
	cmp $WORK/news $WORK/data
}
subscribed() { grep -q ' 1 news$' $WORK/mosquitto.log; }

# --- git ---

start_git() {
	git -c init.defaultBranch=main init -q $WORK/repo
	cp $WORK/data $WORK/repo/
	git -C $WORK/repo add data
	git -C $WORK/repo -c user.name=us -c user.email=us@node commit -qm data
	start git git daemon --export-all --base-path=$WORK --port=7340 --reuseaddr --enable=receive-pack
	listening 7340 git
}
clone() {
	sovia-run git clone -q git://"$SOVIA_PEER":7340/repo $WORK/clone || return
	sha256sum <$WORK/clone/data | cut -c1-64 | grep -qf - $WORK/sum
}
push() {
	git -C $WORK/clone -c user.name=us -c user.email=us@node commit -q --allow-empty -m more
	sovia-run git -C $WORK/clone push -q origin HEAD:refs/heads/pushed || return
	equal "$(there git -C $WORK/repo rev-parse pushed)" "$(git -C $WORK/clone rev-parse HEAD)"
}

# --- lighttpd ---

# The second port wakes the server with the first data (TCP_DEFER_ACCEPT).
lighttpd_conf() {
	cat <<-END
	server.document-root = "$WORK/www"
	server.port = 7350
	server.bind = "[::]"
	server.set-v6only = "disable"
	\$SERVER["socket"] == "[::]:7351" { server.defer-accept = 10 }
	server.modules = ("mod_dirlisting")
	dir-listing.activate = "enable"
	END
}
start_lighttpd() {
	mkdir -p $WORK/www/sub
	head -c 1000 $WORK/data >$WORK/www/1000
	split -b 40000 -a 2 $WORK/data $WORK/www/sub/
	lighttpd_conf >$WORK/lighttpd.conf
	start lighttpd lighttpd -D -f $WORK/lighttpd.conf -m "$PROGRAMS/usr/lib/lighttpd"
	listening 7350 lighttpd && listening 7351 lighttpd
}
ab_() { # PORT ARGUMENT...
	sovia-run ab -q -n 500 -c 20 "${@:2}" "http://$SOVIA_PEER:$1/1000" >$WORK/ab || return
	cat $WORK/ab
	for line in 'Complete requests: *500' 'Failed requests: *0' 'HTML transferred: *500000 bytes'; do
		grep -qx "$line" $WORK/ab || return
	done
	! grep Non-2xx $WORK/ab
}
# Four connections at once, which follow the links in the server's file lists.
mirror() {
	sovia-run lftp -c "mirror --parallel=4 http://$SOVIA_PEER:7350/sub/ $WORK/mirrored" || return
	equal "$(cat $WORK/mirrored/* | sha256sum | cut -c1-64)" "$(cut -c1-64 $WORK/sum)"
}

# --- stress-ng ---

# Bytes over loop, TCP connections (both ends count), and refused ones of AF_SOVIA.
local_counts() { echo "$(sovia stat value loop_tx_bytes) $(tcp_connections) $(sovia stat value conn_refused)"; }

# Client and server on this host. BYTES is the least number of bytes they transfer.  A client may be there before the
# server listens: refused, it asks TCP, which finds the server if that listens by then.  Few of them are.
stress() { # BYTES ARGUMENT...
	local before after
	read -ra before < <(local_counts)
	sovia-run stress-ng --verify --timeout 0 "${@:2}" || return
	read -ra after < <(local_counts)
	echo "before: ${before[*]}, after: ${after[*]} (bytes, TCP, refused)"
	[ $((after[0] - before[0])) -ge "$1" ] && [ $((after[1] - before[1])) -le $((2 * (after[2] - before[2]))) ] &&
		[ $((after[2] - before[2])) -le $EARLY_MOST ]
}
EARLY_MOST=8

stress_ng() {
	local how
	# one operation sends all sizes up to 8 kB, in steps of 16
	for how in send sendmsg sendmmsg; do
		check "stress-ng sock, $how"	stress 100000000 --sock 2 --sock-ops 50 --sock-domain ipv4 --sock-opts $how
	done
	check 'stress-ng sock, IPv6'		stress 100000000 --sock 2 --sock-ops 50 --sock-domain ipv6
	check 'stress-ng sock, zerocopy'	stress 100000000 --sock 2 --sock-ops 50 --sock-domain ipv4 --sock-zerocopy
	check 'stress-ng sock, no delay'	stress 100000000 --sock 2 --sock-ops 50 --sock-domain ipv4 --sock-nodelay
	check 'stress-ng epoll'			stress 4096000 --epoll 2 --epoll-ops 1000 --epoll-domain ipv4
	check 'stress-ng epoll, IPv6'		stress 4096000 --epoll 2 --epoll-ops 1000 --epoll-domain ipv6
	check 'stress-ng sockmany'		stress 8000 --sockmany 2 --sockmany-ops 1000
	# file operations on sockets, and connect() with AF_UNSPEC at both ends
	check 'stress-ng sockabuse'		stress 100000 --sockabuse 1 --sockabuse-ops 10
}

check 'a web server listens'			web_there
check 'memcached listens'			there start_memcached
check 'memcached and twenty clients'		over_link 4000000 4000000 cache
check 'haproxy listens'				start_haproxy
check 'haproxy splices'				over_link 0 $SIZE fetched http://127.0.0.1:7310/data
check 'haproxy parses'				over_link 0 $SIZE fetched http://127.0.0.1:7311/data
check 'stunnel listens'				there start_stunnel no 7320 127.0.0.1:7301
check 'the client of stunnel listens'		start_stunnel yes 127.0.0.1:7321 "$SOVIA_PEER":7320
check 'curl with TLS'				over_link 0 $SIZE fetched -k https://"$SOVIA_PEER":7320/data
check 'curl through two stunnels'		over_link 0 $SIZE fetched http://127.0.0.1:7321/data
check 'mosquitto listens'			there start_mosquitto
check 'a message through mosquitto'		over_link $SIZE $SIZE message
check 'git daemon listens'			there start_git
check 'git clone'				over_link 0 $SIZE clone
check 'git push'				over_link 100 100 push
check 'lighttpd listens'			there start_lighttpd
check 'ab'					over_link 10000 500000 ab_ 7350
check 'ab keeps its connections'		over_link 10000 500000 ab_ 7350 -k
check 'ab, accepted with data'			over_link 10000 500000 ab_ 7351
check 'lftp mirrors'				over_link 0 $SIZE mirror
stress_ng
finish
