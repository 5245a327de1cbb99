#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# An administrator's restrictions apply to AF_SOVIA too: cgroup BPF programs at
# socket() and connect(), routing rules by user, IPsec policies.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# The other ways of opening: AF_INET or AF_INET6 ($1 is 4 or 6) with SOVIAPROTO_INET.
open_inet() {
	python3 -c "
import socket
try:
    socket.socket(socket.AF_INET$([ "$1" = 6 ] && echo 6), socket.SOCK_STREAM, 254).close()
except PermissionError:
    raise SystemExit('EPERM')"
}

sockets() { awk '$1 == "SOVIA" { print $3 }' /proc/net/protocols; }

# An address that no device has.
lonely_address() {
	modprobe dummy && ip link add far type dummy && ip link set far up &&
		ip addr add 10.99.0.1/24 dev far && ip addr add fd99::1/64 dev far nodad
}
lonely() { [ "$1" = 6 ] && echo "fd99::$2" || echo "10.99.0.$2"; }

connects() { # FAMILY HOST PORT WANTED
	equal "$(socktool "-$1" connect "$2" "$3")" "$4"
}

local_host() { [ "$1" = 6 ] && echo ::1 || echo 127.0.0.1; }

# Connects to the echo server on port 500$1 of this node, with a program attached.
watched_connect() { # PROGRAM FAMILY PORT WANTED
	equal "$(cgroup-bpf "$1" socktool "-$2" connect "$(local_host "$2")" "$3")" "$4"
}

# Both sockets of one that may become TCP's.
counted_twice() {
	local line
	line=$(cgroup-bpf count-sockets python3 -c "
import socket
for port in (${PORTS:-6004, 6004}):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 254) as s:
        s.connect(('127.0.0.1', port))")
	echo "$line"
	[[ $line =~ ^opened\ ([0-9]+)\ released\ ([0-9]+)$ ]] && [ "${BASH_REMATCH[1]}" -ge 2 ] && equal "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
}
# A server that has TCP alone.
over_tcp() {
	local status before
	python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', 7004)); time.sleep(100)" &
	sysctl -qw net.sovia.fallback=1
	before=$(sovia stat value fallback)
	eventually eval "ss -Htln | grep -q :7004" && PORTS='7004, 7004' "$@" && [ "$(sovia stat value fallback)" -ge $((before + 2)) ]
	status=$?
	kill $!
	sysctl -qw net.sovia.fallback=0
	return $status
}

as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

rule_by_user() { # FAMILY
	local host
	host=$(lonely "$1" 9)
	equal "$(as_nobody socktool "-$1" connect "$host" 5000)" "$(socktool "-$1" connect "$host" 5000)" || return
	ip "-$1" rule add pref 10 uidrange 65534-65534 to "$host" prohibit || return
	equal "$(as_nobody socktool "-$1" connect "$host" 5000)" EACCES || return
	[ "$(socktool "-$1" connect "$host" 5000)" != EACCES ]
}

# The name of the error of connect(), or nothing.
tos_connect() { # FAMILY HOST PORT TOS
	python3 -c "
import errno, socket
level, option = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if $1 == 6 else (socket.IPPROTO_IP, socket.IP_TOS)
with socket.socket(socket.AF_INET6 if $1 == 6 else socket.AF_INET, socket.SOCK_STREAM, 254) as s:
    s.setsockopt(level, option, $4)
    try:
        s.connect(('$2', $3))
    except OSError as error:
        print(errno.errorcode[error.errno])"
}

# A routing rule forbids the connections that it matches, and no others.
rule_by() { # FAMILY MATCH...: matches DSCP 4, or port 5001
	local host v=$1
	shift
	host=$(lonely "$v" 9)
	ip "-$v" rule add pref 11 to "$host" "$@" prohibit || return
	equal "$(tos_connect "$v" "$host" 5001 0x10)" EACCES &&
		[ "$(tos_connect "$v" "$host" 5000 0)" != EACCES ]
	local status=$?
	ip "-$v" rule del pref 11
	return $status
}

policy() { # add|delete FAMILY SOURCE DESTINATION DIRECTION: requires ESP
	local action=$1 family=$2
	shift 2
	# except RoCE packets, which are UDP
	set -- src "$1" dst "$2" proto tcp dir "$3"
	[ "$action" = delete ] || set -- "$@" tmpl proto esp mode transport
	ip "-$family" xfrm policy "$action" "$@"
}

# Here, the policy covers packets between this node and node-b, both ways.
protect_here() { # add|delete FAMILY
	policy "$1" "$2" "$(address "$2" "$SOVIA_NODE")" "$(address "$2" "$SOVIA_PEER")" out &&
		policy "$1" "$2" "$(address "$2" "$SOVIA_PEER")" "$(address "$2" "$SOVIA_NODE")" in
}

protected() { # FAMILY
	local status=0
	# Each direction is met over TCP, which the policy covers too: before it.
	connects "$1" "$SOVIA_PEER" "500$1" ok || return
	equal "$(there "socktool -$1 connect $SOVIA_NODE 600$1")" ok || return
	protect_here add "$1" || return
	# Python's name for EOPNOTSUPP
	connects "$1" "$SOVIA_PEER" "500$1" ENOTSUP || status=1
	# The peer has no such policy.
	equal "$(there "socktool -$1 connect $SOVIA_NODE 600$1")" ECONNREFUSED || status=1
	protect_here delete "$1" || return
	connects "$1" "$SOVIA_PEER" "500$1" ok || return
	equal "$(there "socktool -$1 connect $SOVIA_NODE 600$1")" ok || return
	return $status
}

# Debian's kernels have IPsec, the debug kernels do not.
ipsec() { ip xfrm policy list >/dev/null 2>&1; }

check 'a server on the peer' start_server
for v in 4 6; do
	socktool -$v echo "600$v" "$WORK/echo$v" &
	check "IPv$v: a server here" eventually test -e "$WORK/echo$v"
done
before=$(sockets)
for v in 4 6; do
	deny "IPv$v: cgroup/sock_create forbids a socket of the family" cgroup-bpf no-socket socktool -$v open
	check '... with EPERM' said EPERM
	deny "IPv$v: ... and one that is opened by its protocol" cgroup-bpf no-socket "$BASH" -c "$(declare -f open_inet); open_inet $v"
	check '... with EPERM' said EPERM
	check '... but not outside the cgroup' open_inet $v
	check "IPv$v: cgroup/connect$v forbids a connection" watched_connect no-connect $v "600$v" EPERM
	check "IPv$v: ... or redirects it" watched_connect "to-port=600$v" $v 1 ok
	check "IPv$v: ... or allows it" connects $v "$(local_host $v)" "600$v" ok
done
check 'what cgroup/sock_create allows, cgroup/sock_release hears of'	counted_twice
check '... when TCP has taken the connection over'	over_tcp counted_twice
check 'no socket is counted for a forbidden call' eventually equal "$(sockets)" "$before"
for v in 4 6; do
	for peer in "$(local_host $v)" "$SOVIA_PEER"; do
		check "IPv$v: $peer: cgroup/skb programs of the client" packet_policy client $v "$peer"
	done
	check "IPv$v: cgroup/skb programs of the listener" packet_policy listener $v
	check "IPv$v: ... that come before accept()" packet_policy late $v
done
check 'an address that no device has' lonely_address
for v in 4 6; do
	check "IPv$v: a routing rule for a user applies" rule_by_user $v
	check "IPv$v: ... for a DSCP" rule_by $v tos 0x10
	check "IPv$v: ... for a port" rule_by $v ipproto tcp dport 5001
	if ipsec; then
		check "IPv$v: traffic under an IPsec policy is refused, at both ends" protected $v
	else
		skip "IPv$v: traffic under an IPsec policy is refused, at both ends" 'no IPsec in this kernel'
	fi
done
rm "$WORK"/echo?
check 'the server on the peer stops' stop_server
wait
check 'the module can be unloaded' eventually modprobe -r sovia
finish
