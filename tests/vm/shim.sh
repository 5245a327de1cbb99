#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The shim: which socket() calls it rewrites, what programs inherit, and what
# reports without AF_SOVIA.
#
# vm: --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
PATH=$PWD/lib:$PATH
WORK=$(mktemp -d)

# Opens a socket with libc's socket(), so through the shim if there is one, and prints
# the result: "sovia FAMILY" or "plain DOMAIN TYPE PROTOCOL" or an errno.
cat >"$WORK/become" <<'END'
import ctypes, errno, fcntl, os, socket, sys
domain, kind, protocol = (int(word, 0) for word in sys.argv[1:4])
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.socket(domain, kind, protocol)
if fd < 0:
    print(errno.errorcode[ctypes.get_errno()])
    sys.exit()
s = socket.socket(fileno=fd)
def option(name):
    return s.getsockopt(socket.SOL_SOCKET, name)
flags = ("n" if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK else "") + \
        ("c" if fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC else "")
domain = option(socket.SO_DOMAIN)
if domain in (socket.AF_INET, socket.AF_INET6) and option(socket.SO_TYPE) == socket.SOCK_STREAM:
    host = "::1" if domain == socket.AF_INET6 else "127.0.0.1"
    s.bind((host, 0))
    # without the module there is no such file
    lines = open("/proc/net/sovia/sock") if os.path.exists("/proc/net/sovia") else []
    if any(line.split()[1].endswith(":%d" % s.getsockname()[1]) for line in lines):
        print("sovia", 6 if domain == socket.AF_INET6 else 4, flags)
        sys.exit()
print("plain", domain, option(socket.SO_TYPE), option(socket.SO_PROTOCOL), flags)
END

AF_UNIX=1 AF_INET=2 AF_INET6=10 AF_NETLINK=16
STREAM=1 DGRAM=2 RAW=3 NONBLOCK=0x800 CLOEXEC=0x80000
TCP=6 ICMP=1 UDP=17 SCTP=132 MPTCP=262

becomes() { # WANT DOMAIN TYPE PROTOCOL
	local want=$1
	shift
	equal "$(sovia-run python3 "$WORK/become" "$@" | sed 's/ *$//')" "$want"
}

unchanged() { # DOMAIN TYPE PROTOCOL: the same with the shim as without
	local plain
	plain=$(python3 "$WORK/become" "$@")
	case $plain in sovia*) echo "AF_SOVIA without the shim"; return 1 ;; esac
	equal "$(sovia-run python3 "$WORK/become" "$@")" "$plain"
}

rules() {
	check 'IPv4 stream, protocol 0'		becomes 'sovia 4' $AF_INET $STREAM 0
	check 'IPv4 stream, IPPROTO_TCP'	becomes 'sovia 4' $AF_INET $STREAM $TCP
	check 'IPv6 stream, protocol 0'		becomes 'sovia 6' $AF_INET6 $STREAM 0
	check 'IPv6 stream, IPPROTO_TCP'	becomes 'sovia 6' $AF_INET6 $STREAM $TCP
	check 'SOCK_NONBLOCK is kept'		becomes 'sovia 4 n' $AF_INET $((STREAM | NONBLOCK)) 0
	check 'SOCK_CLOEXEC is kept'		becomes 'sovia 6 c' $AF_INET6 $((STREAM | CLOEXEC)) $TCP
	check 'both flags are kept'		becomes 'sovia 4 nc' $AF_INET $((STREAM | NONBLOCK | CLOEXEC)) 0
	check 'without the shim, TCP stays TCP'	equal "$(python3 "$WORK/become" $AF_INET $STREAM 0)" 'plain 2 1 6 '
	check 'UDP is left alone'		unchanged $AF_INET $DGRAM 0
	check 'UDP with its protocol, too'	unchanged $AF_INET6 $DGRAM $UDP
	check 'raw sockets are left alone'	unchanged $AF_INET $RAW $ICMP
	check 'MPTCP is left alone'		unchanged $AF_INET $STREAM $MPTCP
	check 'SCTP is left alone'		unchanged $AF_INET $STREAM $SCTP
	check 'a stream with UDP is an error'	unchanged $AF_INET $STREAM $UDP
	check 'an unknown flag is an error'	unchanged $AF_INET $((STREAM | 0x4000)) 0
	check 'Unix sockets are left alone'	unchanged $AF_UNIX $STREAM 0
	check 'netlink is left alone'		unchanged $AF_NETLINK $RAW 0
	check 'an unknown family is an error'	unchanged 99 $STREAM 0
}

# Programs that may not have the family: they go on with TCP, or with --only they get the error.
forbidden() {
	local reason what
	for reason in EAFNOSUPPORT EPERM EACCES; do
		what=$FAMILY
		# by a filter of families, which knows no protocols: systemd's
		[ $reason != EAFNOSUPPORT ] || what=$FAMILY,$AF_INET:254,$AF_INET6:254
		check "the family is forbidden, $reason: TCP" becomes_forbidden "$what" $reason 'plain 2 1 6'
		check "... with --only: $reason" becomes_forbidden "$what" $reason $reason --only
		check "... to sovia-run itself, too: TCP" equal "$(forbid "$what" $reason sovia-run python3 "$WORK/become" $AF_INET6 $STREAM 0)" \
			'plain 10 1 6 '
		check '... with --only: 125' status_of 125 forbid "$what" $reason sovia-run --only touch "$WORK/ran"
		check '... and a message about it' said "cannot open a socket of family $FAMILY"
		deny '... and the program was not run' test -e "$WORK/ran"
	done
	check 'by a filter of families: AF_SOVIA as a protocol' becomes_forbidden "$FAMILY" EAFNOSUPPORT 'sovia 4'
	check '... of IPv6' equal "$(sovia-run forbid "$FAMILY" EAFNOSUPPORT python3 "$WORK/become" $AF_INET6 $((STREAM | CLOEXEC)) $TCP)" \
		'sovia 6 c'
	check '... with --only' becomes_forbidden "$FAMILY" EAFNOSUPPORT 'sovia 4' --only
	check '... to sovia-run itself, too' equal "$(forbid "$FAMILY" EAFNOSUPPORT sovia-run --only python3 "$WORK/become" $AF_INET $STREAM 0 2>&1)" \
		'sovia 4 '
	check 'flags are kept' equal "$(sovia-run forbid "$FAMILY" EPERM python3 "$WORK/become" $AF_INET $((STREAM | NONBLOCK | CLOEXEC)) $TCP)" \
		'plain 2 1 6 nc'
	check 'no descriptors are no reason' becomes_forbidden "$FAMILY" EMFILE EMFILE
	check 'nor is no memory' becomes_forbidden "$FAMILY" ENOMEM ENOMEM
	check 'the module is unloaded under a program: TCP' module_goes 'plain 2 1 6'
	check '... with --only: EAFNOSUPPORT' module_goes EAFNOSUPPORT --only
}
# And nothing loads it again.
module_goes() { # WANT [OPTION]
	local got
	echo 'install sovia /bin/false' >/etc/modprobe.d/no-sovia.conf
	# shellcheck disable=SC2016 # for the inner shell
	got=$(sovia-run ${2:+"$2"} sh -c 'modprobe -r sovia && "$@"' - python3 "$WORK/become" $AF_INET $STREAM 0 | sed 's/ *$//')
	rm /etc/modprobe.d/no-sovia.conf
	modprobe sovia && equal "$got" "$1"
}
becomes_forbidden() { # WHAT ERRNO WANT [OPTION]
	equal "$(sovia-run ${4:+"$4"} forbid "$1" "$2" python3 "$WORK/become" $AF_INET $STREAM 0 | sed 's/ *$//')" "$3"
}

# An installation in which ld.so finds a library for either kind of program: of 32 bits that of libc6-i386, or of libc6:i386.
install_both() {
	local prefix=$WORK/usr headers
	headers=/usr/include/$(gcc -print-multiarch)
	make -s -C ../../userland O="$prefix" PREFIX="$prefix" LIBDIR="$prefix/lib/x86_64-linux-gnu" "$prefix/bin/sovia-run" \
		"$prefix/lib/libsovia-preload.so" &&
		mkdir "$prefix"/lib{32,/x86_64-linux-gnu,/i386-linux-gnu} && mv "$prefix/lib/libsovia-preload.so" "$prefix/lib/x86_64-linux-gnu" &&
		make -s -C ../../userland O="$prefix" CC='gcc -m32' CPPFLAGS="-idirafter $headers" "$prefix/lib/libsovia-preload.so" &&
		cp "$prefix/lib/libsovia-preload.so" "$prefix/lib/i386-linux-gnu" && mv "$prefix/lib/libsovia-preload.so" "$prefix/lib32" &&
		gcc -o "$WORK/protocol64" lib/protocol.c && gcc -m32 -idirafter "$headers" -o "$WORK/protocol32" lib/protocol.c
}
# Without a word of ld.so's.
protocol_is() { equal "$("$WORK/usr/bin/sovia-run" "$@" 2>&1)" 254; }

kinds_of_programs() {
	if [ "$(uname -m)" != x86_64 ]; then
		skip '32-bit programs' 'of another processor'
		return
	fi
	limit 180
	check 'libraries of 64 and 32 bits' install_both
	limit 60
	check 'a 64-bit program' protocol_is "$WORK/protocol64"
	check 'a 32-bit program' protocol_is "$WORK/protocol32"
	# shellcheck disable=SC2016 # for the inner shell
	check 'a 32-bit child of a 64-bit one' protocol_is sh -c '"$1"; :' - "$WORK/protocol32"
}

# Only socket is exported: no clash with a program's own symbols.
one_symbol() {
	local library
	library=$(dirname "$(command -v sovia-run)")/../lib/libsovia-preload.so
	equal "$(nm -D --defined-only "$library" | awk '{ print $3 }')" socket
}

# shellcheck disable=SC2016 # for the inner shell
preload_under() { "$@" sh -c 'echo "$LD_PRELOAD"'; }

keeps_preload() {
	local value
	value=$(LD_PRELOAD=libm.so.6 preload_under sovia-run)
	[[ $value == */libsovia-preload.so:libm.so.6 ]] || { echo "$value"; return 1; }
}

nested() {
	equal "$(preload_under sovia-run sovia-run)" "$(preload_under sovia-run)"
}

become_after() { # COMMAND...: the program runs under COMMAND
	equal "$("$@" python3 "$WORK/become" $AF_INET $STREAM 0)" 'sovia 4 '
}

tells_family() {
	# shellcheck disable=SC2016 # for the inner shell
	equal "$(sovia-run sh -c 'echo $SOVIA_FAMILY')" "$(cat /sys/module/sovia/parameters/family)"
}

inheritance() {
	check 'only socket is exported'			one_symbol
	check 'an existing LD_PRELOAD is kept'		keeps_preload
	check 'sovia-run under sovia-run'		nested
	check 'SOVIA_FAMILY is the module'\''s'		tells_family
	# shellcheck disable=SC2016 # for the inner shell
	check 'a child of a child is covered'		become_after sovia-run sh -c '"$@"; :' -
	# shellcheck disable=SC2016 # for the inner shell
	check 'exec keeps it'				become_after sovia-run sh -c 'exec "$@"' -
	check 'exec by env and setsid keeps it'		become_after sovia-run env A=b setsid -w
}

status_of() { # WANT COMMAND...
	local want=$1
	shift
	"$@"
	equal $? "$want"
}

statuses() {
	check 'the exit status is the program'\''s'	status_of 7 sovia-run sh -c 'exit 7'
	check 'a program that does not exist: 127'	status_of 127 sovia-run /nonexistent
	check 'a program that cannot run: 126'		status_of 126 sovia-run /etc/passwd
	check 'no program: 125'				status_of 125 sovia-run
	check 'an unknown option: 125'			status_of 125 sovia-run --bogus
	check '... which it names'			eval 'sovia-run --bogus true 2>&1 | grep -q "^sovia-run: .* --bogus$"'
	check '--wait without a number: 125'		status_of 125 sovia-run --wait true
	check '--only, no program: 125'			status_of 125 sovia-run --only
	check '--help'					status_of 0 sovia-run --help
	check '--version'				status_of 0 sovia-run --version
	check '-- ends the options'			status_of 3 sovia-run -- sh -c 'exit 3'
}

# An unmodified server and client, and the bytes counted by the module.
fetch_by_http() {
	local before after size=300000
	head -c $size /dev/urandom >"$WORK/data"
	sovia-run python3 -m http.server -d "$WORK" --bind 127.0.0.1 8000 >/dev/null 2>&1 &
	eventually grep -q '^LISTEN .*:8000 ' /proc/net/sovia/sock || return
	before=$(sovia stat value loop_rx_bytes)
	sovia-run curl -sS -o "$WORK/copy" http://127.0.0.1:8000/data
	after=$(sovia stat value loop_rx_bytes)
	kill $!
	wait $! 2>/dev/null
	cmp "$WORK/data" "$WORK/copy" || return
	[ $((after - before)) -ge $size ] || { echo "$((after - before)) bytes over AF_SOVIA"; return 1; }
}

without_server() {
	deny 'curl without a server is refused' sovia-run curl -sS http://127.0.0.1:8001/
	check 'and says so' said "couldn't connect"
}

# It is not for programs to load the module, not even for those of root.
unloaded() {
	modprobe -r sovia
	check 'no module: 125' status_of 125 sovia-run touch "$WORK/ran"
	check '... and a message about it' said 'sovia-run: the module sovia is not loaded .*systemctl start sovia'
	deny '... and the program was not run' test -e "$WORK/ran"
	deny 'sovia says that there is no module' sovia stat
	check '... clearly' said 'the module sovia is not loaded'
	deny 'and there still is none' test -e /sys/module/sovia
	check 'with the module it runs the program' eval 'modprobe sovia && become_after sovia-run'
}

other_number() {
	modprobe -r sovia
	modprobe sovia family=28 || return
	equal "$(sovia-run python3 "$WORK/become" $AF_INET6 $STREAM 0)" 'sovia 6 ' || return
	# shellcheck disable=SC2016 # for the inner shell
	equal "$(sovia-run sh -c 'echo $SOVIA_FAMILY')" 28 || return
	modprobe -r sovia
	# the first socket loads it, with another number than that of the alias
	printf '%s\n' 'options sovia family=27' 'alias net-pf-19 sovia' >/etc/modprobe.d/sovia-number.conf
	equal "$(sovia-run python3 "$WORK/become" $AF_INET $STREAM 0)" 'sovia 4 '
	local status=$?
	rm /etc/modprobe.d/sovia-number.conf
	modprobe -r sovia
	modprobe sovia && return $status
}

statistics() {
	sovia stat | awk 'NF && (NF != 2 || $2 !~ /^[0-9]+$/) { bad = 1; print } END { exit bad || NR < 5 }' || return
	sovia -j stat | python3 -c 'import json, sys; assert len(json.load(sys.stdin)[0]) >= 5' || return
	equal "$(sovia stat link_up | cut -d" " -f1)" link_up || return
	! sovia stat no_such_counter
}

FAMILY=$(cat /sys/module/sovia/parameters/family)
rules
inheritance
forbidden
kinds_of_programs
statuses
check 'sovia stat' statistics
check 'an HTTP server and curl' fetch_by_http
without_server
unloaded
check 'another family number' other_number
finish
