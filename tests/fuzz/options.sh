#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# options.sh CC...: all socket options of the C compiler's headers, as lines { LEVEL, NAME, "NAME" }, for beside.c.
#
# Of each level every name that is a number from 0 to 255, so that options which later headers bring are there, too.
set -eu

# The names in @2... that begin with @1, as an initialiser each.
level() {
	level=$1 pattern=$2 headers=$3
	shift 3
	for header in $headers; do echo "#include <$header>"; done | "$@" -E -dM - | awk -v level="$level" -v pattern="$pattern" '
		$2 ~ "^(" pattern ")" && $2 !~ /\(/ && NF == 3 && $3 ~ /^(0x[0-9a-f]+|[0-9]+)$/ && length($3) <= 4 {
			print "{ " level ", " $2 ", \"" $2 "\" },"
		}'
}

level SOL_SOCKET SO_ "asm/socket.h" "$@"
level SOL_IP 'IP_|MCAST_' "linux/in.h" "$@"
level SOL_IPV6 'IPV6_|MCAST_' "linux/in6.h linux/in.h" "$@"
level SOL_TCP TCP_ "linux/tcp.h" "$@"
