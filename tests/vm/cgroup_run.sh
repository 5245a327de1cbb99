#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sovia-run --cgroup: TCP sockets of static and setuid programs become AF_SOVIA's; and what it
# says where the kernel cannot do that.
#
# vm: --timeout 300
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
WORK=$(mktemp -d)
ROOT=/sys/fs/cgroup

AF_INET=2 AF_INET6=10 STREAM=1 DGRAM=2 RAW=3 NONBLOCK=0x800 CLOEXEC=0x80000
TCP=6 ICMP=1 MPTCP=262 SOVIA=254

# Prints the protocol of a new socket.
cat >"$WORK/protocol" <<'END2'
#!/usr/bin/python3
import socket, sys
s = socket.socket(*(int(word, 0) for word in sys.argv[1:4]))
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
END2
chmod -R 755 "$WORK"

status_of() { # WANT COMMAND...
	local want=$1
	shift
	"$@"
	equal $? "$want"
}

as_nobody() { setpriv --reuid 65534 --clear-groups "$@"; }

prepare() {
	[ -e $ROOT/cgroup.procs ] || mount -t cgroup2 cgroup2 $ROOT
}

without_cgroup2() { unshare -m sh -c "umount -l $ROOT && exec sovia-run --cgroup true"; }

no_group_left() { ! compgen -G "$ROOT/sovia-run-*"; }

becomes() { # WANT DOMAIN TYPE PROTOCOL
	local want=$1
	shift
	equal "$(sovia-run --cgroup "$WORK/protocol" "$@")" "$want"
}

unchanged() { # DOMAIN TYPE PROTOCOL
	equal "$(sovia-run --cgroup "$WORK/protocol" "$@" 2>&1)" "$("$WORK/protocol" "$@" 2>&1)"
}

sockets() {
	check 'IPv4 stream, protocol 0'		becomes $SOVIA $AF_INET $STREAM 0
	check 'IPv4 stream, IPPROTO_TCP'	becomes $SOVIA $AF_INET $STREAM $TCP
	check 'IPv6 stream, protocol 0'		becomes $SOVIA $AF_INET6 $STREAM 0
	check 'IPv6 stream, IPPROTO_TCP'	becomes $SOVIA $AF_INET6 $STREAM $TCP
	check 'with flags'			becomes $SOVIA $AF_INET $((STREAM | NONBLOCK | CLOEXEC)) 0
	check 'UDP is left alone'		unchanged $AF_INET $DGRAM 0
	check 'raw sockets are left alone'	unchanged $AF_INET $RAW $ICMP
	check 'MPTCP is left alone'		unchanged $AF_INET $STREAM $MPTCP
	check 'Unix sockets are left alone'	unchanged 1 $STREAM 0
	check 'an unknown family is an error'	unchanged 99 $STREAM 0
}

is_protocol() { # WANT COMMAND...: that runs a program
	local want=$1
	shift
	equal "$("$@" "$WORK/protocol" $AF_INET $STREAM 0)" "$want"
}

# In a group below, before it opens a socket.
cat >"$WORK/below" <<'END2'
#!/bin/sh
below=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/below
mkdir "$below" && echo $$ >"$below/cgroup.procs" && "$@"
status=$?
echo $$ >"$below/../cgroup.procs" && rmdir "$below" && exit $status
END2
# Leaves the group.
cat >"$WORK/leave" <<'END2'
#!/bin/sh
echo $$ >/sys/fs/cgroup/cgroup.procs && exec "$@"
END2
chmod 755 "$WORK"/*

# ld.so would ignore LD_PRELOAD here.
setuid() {
	cp "$(realpath /usr/bin/python3)" "$WORK/setuid-python" && chmod 4755 "$WORK/setuid-python" || return
	equal "$(sovia-run --cgroup setpriv --reuid 65534 --clear-groups "$WORK/setuid-python" -c '
import os, socket
print(os.getuid(), os.geteuid(), socket.socket().getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))')" "65534 0 $SOVIA"
}

# The group of another one: its program does not see us.
outside() {
	sovia-run --cgroup sleep 60 &
	eventually compgen -G "$ROOT/sovia-run-*" >/dev/null || return
	is_protocol $TCP env
	local status=$?
	kill $!
	wait $!
	return $status
}

who() {
	check 'a child of a child'		is_protocol $SOVIA sovia-run --cgroup sh -c '"$@"; :' -
	check 'exec by env and setsid'		is_protocol $SOVIA sovia-run --cgroup env -i setsid -w
	check 'a group below'			is_protocol $SOVIA sovia-run --cgroup "$WORK/below"
	check 'not who leaves the group'	is_protocol $TCP sovia-run --cgroup "$WORK/leave"
	check 'not who is outside'		outside
	check 'a setuid program'		setuid
	check 'under itself'			is_protocol $SOVIA sovia-run --cgroup sovia-run --cgroup
	check 'under the shim'			is_protocol $SOVIA sovia-run sovia-run --cgroup
	check 'with the shim'			is_protocol $SOVIA sovia-run --cgroup sovia-run
	check 'nothing is left behind'		no_group_left
	check 'not who comes later'		is_protocol $TCP env
}

counter() { sovia stat value loop_rx_bytes; }

# Under COMMAND, with how many bytes over AF_SOVIA (some of them the kernels').
fetch() { # AT LEAST, AT MOST, URL, COMMAND...
	local least=$1 most=$2 url=$3 before after
	shift 3
	rm -f "$WORK/copy"
	before=$(counter)
	"$@" busybox wget -q -O "$WORK/copy" "$url/data" || return
	after=$(counter)
	cmp "$WORK/data" "$WORK/copy" || return
	echo "$((after - before)) bytes over AF_SOVIA"
	[ $((after - before)) -ge "$least" ] && [ $((after - before)) -le "$most" ]
}

answers() { busybox wget -q -O /dev/null "$1/data"; }

serve() { # PORT COMMAND...
	local port=$1
	shift
	setsid "$@" busybox httpd -f -p "$port" -h "$WORK" >/dev/null 2>&1 &
	echo $! >"$WORK/server.$port"
	eventually answers "http://127.0.0.1:$port"
}

stop() { kill "$(<"$WORK/server.$1")"; }

is_static() { ! readelf -l "$(command -v "$1")" | grep INTERP; }

static() {
	local size=300000
	head -c $size /dev/urandom >"$WORK/data"
	check 'busybox is a static program' is_static busybox
	check 'a static server' serve 8000 sovia-run --cgroup
	check '... is a listener of AF_SOVIA' grep -q '^LISTEN .*:8000 ' /proc/net/sovia/sock
	check 'a static client, IPv4' fetch $size 99999999 http://127.0.0.1:8000 sovia-run --cgroup
	check 'a static client, IPv6' fetch $size 99999999 'http://[::1]:8000' sovia-run --cgroup
	check 'the shim does nothing for it' fetch 0 0 http://127.0.0.1:8000 sovia-run
	check 'a client of TCP' fetch 0 0 http://127.0.0.1:8000 env
	check 'a server of TCP' serve 8001 env
	check 'a static client becomes TCP there' fetch 0 1000 http://127.0.0.1:8001 sovia-run --cgroup
	check 'the servers end' eval 'stop 8000 && stop 8001'
	check 'nothing is left behind' eventually no_group_left
}

# Runs COMMAND under sovia-run --cgroup, sends it a signal when $WORK/ready is there.
signalled() { # WANT SIGNAL COMMAND...
	local want=$1 signal=$2
	shift 2
	rm -f "$WORK/ready"
	READY=$WORK/ready sovia-run --cgroup "$@" &
	eventually test -e "$WORK/ready" && kill "-$signal" $!
	wait $!
	equal $? "$want"
}

statuses() {
	check 'the exit status is the program'\''s'	status_of 7 sovia-run --cgroup sh -c 'exit 7'
	# shellcheck disable=SC2016 # for the inner shell
	check 'a program that a signal ends: 128 and it' status_of 137 sovia-run --cgroup sh -c 'kill -KILL $$'
	check 'a program that does not exist: 127'	status_of 127 sovia-run --cgroup /nonexistent
	check 'a program that cannot run: 126'		status_of 126 sovia-run --cgroup /etc/passwd
	check 'no program: 125'				status_of 125 sovia-run --cgroup
	for signal in TERM HUP USR1; do
		# shellcheck disable=SC2016 # for the inner shell
		check "SIG$signal is for the program" signalled 9 $signal \
			bash -c "trap 'exit 9' $signal"'; >"$READY"; while :; do sleep 0.1; done'
	done
	# shellcheck disable=SC2016 # for the inner shell
	check 'it stays for a daemon, and ends it' signalled 3 TERM \
		sh -c '(trap "" HUP; exec setsid sleep 1000) & (sleep 1; >"$READY") & exit 3'
	check 'nothing is left behind' no_group_left
}

# Sockets are TCP's from then on.
killed() {
	# shellcheck disable=SC2016 # for the inner shell
	sovia-run --cgroup sh -c '>"$1/ready2"; sleep 1; until [ -e "$1/go" ]; do sleep 0.1; done
		"$1/protocol" 2 1 0 >"$1/result"' - "$WORK" &
	eventually test -e "$WORK/ready2" && kill -KILL $!
	wait $!
	touch "$WORK/go"
	eventually test -s "$WORK/result" && equal "$(<"$WORK/result")" $TCP &&
		eventually rmdir $ROOT/sovia-run-*
}

refusals() {
	for option in --only '--wait 10'; do
		# shellcheck disable=SC2086 # two words
		check "with $option: 125" status_of 125 sovia-run --cgroup $option touch "$WORK/ran"
		check '... and what to do instead' said 'sovia rule'
	done
	check 'under sovia-run --only, too' status_of 125 sovia-run --only sovia-run --cgroup touch "$WORK/ran"
	check 'an unprivileged user: 125' status_of 125 as_nobody sovia-run --cgroup touch "$WORK/ran"
	check '... and who may' said 'as root'
	check 'no cgroup2: 125' status_of 125 without_cgroup2
	check '... and says so' said 'cgroup2 is not mounted'
	deny 'the program was not run' test -e "$WORK/ran"
	check 'nothing is left behind' no_group_left
}

old_kernel() {
	check 'a kernel before 6.6: 125' status_of 125 sovia-run --cgroup touch "$WORK/ran"
	check '... and a message about it' said 'needs Linux 6\.6'
	deny 'the program was not run' test -e "$WORK/ran"
	check 'nothing is left behind' no_group_left
}

# A program that the kernel's verifier refuses: it reads an argument that the function does not have.
build_wrong() {
	mkdir "$WORK/wrong" && cp ../../userland/*.[ch] "$WORK/wrong" &&
		sed -i 's/update_socket_protocol/security_socket_create/; s/off = 16 /off = 160 /' "$WORK/wrong/run_cgroup.c" &&
		gcc -D_GNU_SOURCE -I../../uapi -o "$WORK/wrong/sovia-run" "$WORK"/wrong/{sovia-run,run_cgroup}.c -lbpf
}
verifier() {
	limit 120
	check 'another program' build_wrong
	limit 60
	check '... which the kernel refuses: 125' status_of 125 "$WORK/wrong/sovia-run" --cgroup touch "$WORK/ran"
	check '... and says why' said 'invalid bpf_context access off=160'
	deny '... which is not who runs it' said 'as root'
	deny 'the program was not run' test -e "$WORK/ran"
}

check 'cgroup2' prepare
verifier
check 'the program itself' is_protocol $TCP env
case $(uname -r) in
6.1.*) old_kernel ;;
*)
	sockets
	who
	static
	statuses
	check 'sovia-run is killed' killed
	refusals
	;;
esac
finish
