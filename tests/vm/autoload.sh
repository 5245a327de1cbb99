#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Nobody's request loads the module into the host: no socket, no name of a netlink family, neither of
# users nor from containers.  With the example of the packages in /etc/modprobe.d each of them does.
#
# vm: --timeout 900
set -u
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"

loaded() { grep -q '^sovia ' /proc/modules; }
unloaded() { ! loaded || rmmod sovia; }
user() { setpriv --reuid "$1" --clear-groups "${@:2}"; } # UID COMMAND...
# In a user and network namespace of its own.
contained() { unshare --user --map-root-user --net "$@"; }

# A stream socket of a family and protocol.
opens() { # COMMAND... FAMILY PROTOCOL
	"${@:1:$#-2}" python3 -c '
import socket, sys
socket.socket(int(sys.argv[1]), socket.SOCK_STREAM, int(sys.argv[2]))' "${@: -2}"
}

# CTRL_CMD_GETFAMILY, which is answered if there is such a family.
finds() { # COMMAND... NAME
	"${@:1:$#-1}" python3 -c '
import socket, struct, sys
name = sys.argv[1].encode() + b"\0"
name = struct.pack("=HH", 4 + len(name), 2) + name + b"\0" * (-len(name) % 4)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
    sock.sendto(struct.pack("=IHHIIBBH", 20 + len(name), 16, 1, 1, 0, 3, 1, 0) + name, (0, 0))
    reply = sock.recv(65536)
# 2: NLMSG_ERROR
sys.exit(struct.unpack_from("=H", reply, 4)[0] == 2)' "${@: -1}"
}

# It fails, and leaves the module where it was: on the disk.
refused() { # COMMAND...
	unloaded || return
	! "$@" || { echo 'it succeeds'; return 1; }
	! loaded || { echo 'the module is loaded'; return 1; }
}
loads() { unloaded && "$@" && loaded; } # COMMAND...

example() { cp userland/examples/autoload.conf /etc/modprobe.d/sovia-autoload.conf; }
aliases() { modinfo -F alias "$1" | sort | tr '\n' ' '; }

check 'modprobe would find the module' modprobe -n sovia
check 'it has no alias that a request has' equal "$(aliases sovia)$(aliases sovia_diag)" ''
for who in 'user 0' 'user 65534' 'contained'; do
	# shellcheck disable=SC2086 # a command and its arguments
	{
		check "$who: a socket of family 19" refused opens $who 19 0
		check "$who: of IPv4, protocol 254" refused opens $who 2 254
		check "$who: of IPv6, protocol 254" refused opens $who 10 254
		check "$who: the netlink family" refused finds $who sovia
		check "$who: the command sovia" refused $who sovia rule show
		check '... it says so' said 'the module sovia is not loaded'
		check "$who: sovia-run" refused $who sovia-run true
		check '... it says so' said 'the module sovia is not loaded'
	}
done

check 'the example is installed' example
for who in 'user 0' 'user 65534'; do
	# shellcheck disable=SC2086
	{
		check "$who: a socket of family 19 loads it" loads opens $who 19 0
		check "$who: of IPv4, protocol 254" loads opens $who 2 254
		check "$who: of IPv6, protocol 254" loads opens $who 10 254
		check "$who: the netlink family" loads finds $who sovia
		check "$who: sovia-run" loads $who sovia-run true
	}
done
check 'another file switches rare families off' eval "echo 'alias net-pf-19 off' >/etc/modprobe.d/rare.conf"
check '... the example counts' loads opens user 65534 19 0
deny 'protocol 253 does not open a socket' opens user 0 2 253
finish
