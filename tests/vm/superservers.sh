#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How servers get their sockets: from superservers (openbsd-inetd has a script
# of its own), from a service manager, or by fork() in all its patterns.
#
# vm: --timeout 300
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

nc_() { timeout 30 sovia-run nc -N "$@"; }

# ask HOST PORT CONNECTIONS WANT: WANT is "PROCESSES THREADS"
ask() { equal "$(timeout 50 sovia-run echo_servers ask "$1" "$2" "$3")" "$4"; }

large() { # HOST PORT: the service is sha256sum
	head -c 3000000 /dev/urandom >$WORK/data
	equal "$(nc_ "$1" "$2" <$WORK/data)" "$(sha256sum <$WORK/data)"
}

# --- superservers ---

# By port: "nowait", the same with a stock program, "wait".
inetutils() {
	echo "7000 stream tcp6 nowait root $HERE/lib/echo_servers echo_servers stdin"
	echo "7001 stream tcp6 nowait nobody /usr/bin/sha256sum sha256sum"
	echo "7002 stream tcp wait root $HERE/lib/echo_servers echo_servers listener 0"
	echo "7003 stream tcp nowait root $PROGRAMS/usr/sbin/tcpd /bin/cat"
}

xinetd_service() { # PORT WAIT SERVER ARGS [LINE]...
	local line
	echo "service port$1"
	echo "{"
	for line in 'type = UNLISTED' 'socket_type = stream' 'protocol = tcp' 'user = root' "port = $1" \
		"wait = $2" ${3:+"server = $3"} ${4:+"server_args = $4"} "${@:5}"; do
		echo "	$line"
	done
	echo "}"
}

xinetd_conf() {
	echo "defaults"
	echo "{"
	echo "	log_type = FILE $WORK/xinetd.services"
	echo "}"
	xinetd_service 7100 no "$HERE/lib/echo_servers" stdin 'flags = IPv6'
	xinetd_service 7101 no /usr/bin/sha256sum '-' 'flags = IPv6'
	xinetd_service 7102 yes "$HERE/lib/echo_servers" 'listener 0'
	xinetd_service 7103 no '' '' 'redirect = 127.0.0.1 7106'
	xinetd_service 7104 no /bin/cat '' 'flags = IPv6' 'only_from = ::1'
	xinetd_service 7105 no "$HERE/lib/echo_servers" stdin 'instances = 2'
	xinetd_service 7106 no /usr/bin/seq 300000
}

start_inetutils() {
	inetutils >$WORK/inetutils.conf
	echo 'cat: 127.0.0.2' >/etc/hosts.deny
	# it daemonizes
	start inetutils inetutils-inetd $WORK/inetutils.conf
	listening 7003 inetutils
}

start_xinetd() {
	xinetd_conf >$WORK/xinetd.conf
	start xinetd xinetd -dontfork -f $WORK/xinetd.conf
	listening 7106 xinetd
}

nowait_and_wait() { # NAME PORT
	local family
	for family in 127.0.0.1 ::1; do
		check "$1: nowait, to $family"			ask $family $(($2)) 3 '3 3'
		check "$1: an unmodified service, to $family"	large $family $(($2 + 1))
	done
	check "$1: wait"			ask 127.0.0.1 $(($2 + 2)) 1 '1 1'
	check "$1: wait, the next one"		ask 127.0.0.1 $(($2 + 2)) 1 '1 1'
}

# xinetd's relay ends at the first end of file, so only the service sends.
redirected() {
	equal "$(timeout 30 sovia-run nc -d 127.0.0.1 7103 | sha256sum)" "$(seq 300000 | sha256sum)"
}

echoes() { equal "$(echo word | nc_ "$@")" word; }

# Accepted and closed at once, because of its source address.
turned_away() {
	local before
	before=$(sovia stat value conn_passive)
	equal "$(echo word | nc_ "$@")" '' && [ "$(sovia stat value conn_passive)" -gt "$before" ]
}

# Two connections are allowed; the third is closed at once.
limited() {
	cat >$WORK/limited.py <<-'END'
	import socket
	allowed = [socket.create_connection(("127.0.0.1", 7105), 30) for _ in range(2)]
	assert all(c.recv(100) for c in allowed)
	try:
	    assert socket.create_connection(("127.0.0.1", 7105), 30).recv(100) == b""
	except ConnectionResetError:
	    pass
	END
	sovia-run python3 $WORK/limited.py
}

superservers() {
	check 'inetutils-inetd starts'			start_inetutils
	nowait_and_wait inetutils-inetd 7000
	check 'tcpd accepts'				echoes 127.0.0.1 7003
	check 'tcpd refuses by address'			turned_away -s 127.0.0.2 127.0.0.1 7003
	check 'xinetd starts'				start_xinetd
	nowait_and_wait xinetd 7100
	check 'xinetd redirects'			redirected
	check 'xinetd accepts'				echoes ::1 7104
	check 'xinetd refuses by address'		turned_away 127.0.0.1 7104
	check 'xinetd limits its instances'		limited
	check 'xinetd ends'				stop xinetd
}

# --- socket activation ---

activation() {
	start accept systemd-socket-activate -a -l 127.0.0.1:7200 "$HERE/lib/echo_servers" connection 3
	check 'systemd-socket-activate listens'		listening 7200 accept
	check 'Accept=yes'				ask 127.0.0.1 7200 3 '3 3'
	start streams systemd-socket-activate -a --inetd -l 7203 sha256sum
	check 'for standard streams, too'		listening 7203 streams
	check 'Accept=yes, standard streams'		large ::1 7203
	start listener systemd-socket-activate -l 7201 "$HERE/lib/echo_servers" listener 3
	check 'it listens for both families'		listening 7201 listener
	check 'Accept=no, LISTEN_FDS'			ask ::1 7201 1 '1 1'
	start mapped systemd-socket-activate -l 7202 "$HERE/lib/echo_servers" listener 3
	check 'systemd-socket-activate listens again'	listening 7202 mapped
	check 'Accept=no, from IPv4'			ask 127.0.0.1 7202 1 '1 1'
}

# --- processes, threads, events ---

pattern() { # KIND PORT CONNECTIONS WANT
	start "$1" echo_servers "$1" "$2"
	check "a $1 server starts"			listening "$2" "$1"
	check "$1: $3 connections at once"		ask 127.0.0.1 "$2" "$3" "$4"
	check "$1: $3 more at once"			ask 127.0.0.1 "$2" "$3" "$4"
}

patterns() {
	pattern forking 7300 8 '8 8'
	pattern preforking 7301 4 '4 4'
	pattern threading 7302 8 '1 8'
	pattern epoll 7303 50 '1 1'
	start socat socat TCP-LISTEN:7304,fork,reuseaddr SYSTEM:sha256sum
	check 'socat starts'				listening 7304 socat
	check 'socat: fork, and a shell'		large 127.0.0.1 7304
	check 'socat: fork, again'			large 127.0.0.1 7304
}

nothing_left() { eventually nothing_established; }
nothing_established() { ! grep -v '^LISTEN' /proc/net/sovia/sock; }

no_tcp() { equal "$(tcp_connections)" 0; }

superservers
activation
patterns
check 'nothing is left over' nothing_left
check 'no TCP connection was made' no_tcp
finish
