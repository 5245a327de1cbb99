#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# options.sh CC...: all socket options of the C compiler's headers, as lines { LEVEL, NUMBER, "NAME", SIZE, CONTENT }, for
# beside.c and tests/e2e/cases/options_all.py.
#
# Of each level every name that is a number from 0 to 255, so that options which later headers bring are there, too, in
# the order of their numbers.  SIZE is that of the value: an int, or a structure of the headers.
set -eu

# Names, their type, and what beside.c puts into it.
types='
SO_LINGER				linger			NUMBER
SO_(RCV|SND)TIMEO_.*			timeval			NUMBER
SO_TXTIME				sock_txtime		NUMBER
SO_ATTACH_(FILTER|REUSEPORT_CBPF)	sock_fprog		PROGRAM
SO_BINDTODEVICE				char[16]		NAME
TCP_(CONGESTION|ULP)			char[16]		NAME
TCP_FASTOPEN_KEY			char[16]		NUMBER
TCP_MD5SIG(_EXT)?			tcp_md5sig		NUMBER
TCP_REPAIR_WINDOW			tcp_repair_window	NUMBER
TCP_REPAIR_OPTIONS			tcp_repair_opt		NUMBER
TCP_ZEROCOPY_RECEIVE			tcp_zerocopy_receive	NUMBER
TCP_INFO				tcp_info		NUMBER
IP_(ADD|DROP)_MEMBERSHIP		ip_mreqn		MREQN
IP_MULTICAST_IF				ip_mreqn		MREQN
IP_(ADD|DROP)_SOURCE_MEMBERSHIP		ip_mreq_source		MREQ_SOURCE
IP_(UN)?BLOCK_SOURCE			ip_mreq_source		MREQ_SOURCE
IP_MSFILTER				ip_msfilter		MSFILTER
MCAST_(JOIN|LEAVE)_GROUP		group_req		GROUP_REQ
MCAST_(JOIN|LEAVE)_SOURCE_GROUP		group_source_req	GROUP_SOURCE
MCAST_(UN)?BLOCK_SOURCE			group_source_req	GROUP_SOURCE
MCAST_MSFILTER				group_filter		GROUP_FILTER
IPV6_(ADD|DROP)_MEMBERSHIP		ipv6_mreq		MREQ6
IPV6_(JOIN|LEAVE)_ANYCAST		ipv6_mreq		MREQ6
IPV6_(2292)?PKTINFO			in6_pktinfo		NUMBER
IPV6_FLOWLABEL_MGR			in6_flowlabel_req	NUMBER
'
# Names of values, not of options.
values='_PMTUDISC_|_FL_[AFS]_|_TLV_|_ISOLATE$|_DEFAULT_|^MCAST_(EX|IN)CLUDE$|MD5SIG_(FLAG|MAX)|_REPAIR_O(N|FF)|_ZEROCOPY_FLAG_'

# The names in $3 that begin with $2, as an initialiser each.
level() {
	level=$1 pattern=$2 headers=$3
	shift 3
	for header in $headers; do echo "#include <$header>"; done | "$@" -E -dM - |
		awk -v level="$level" -v pattern="$pattern" -v values="$values" -v types="$types" '
		BEGIN {
			known = split(types, line, "\n")
		}
		$2 ~ "^(" pattern ")" && $2 !~ /\(/ && $2 !~ values && NF == 3 &&
		$3 ~ /^(0x[0-9a-f]+|[0-9]+)$/ && length($3) <= 4 {
			type = "int"
			content = "NUMBER"
			for (i = 1; i <= known; i++) {
				split(line[i], field)
				if (!(1 in field) || $2 !~ "^" field[1] "$")
					continue
				type = (field[2] ~ /\[/ ? "" : "struct ") field[2]
				content = field[3]
			}
			print $3, "{ " level ", " $3 ", \"" $2 "\", sizeof(" type "), " content " },"
		}' | sort -n | cut -d ' ' -f 2-
}

level SOL_SOCKET SO_ "asm/socket.h" "$@"
level SOL_IP 'IP_|MCAST_' "linux/in.h" "$@"
level SOL_IPV6 'IPV6_|MCAST_' "linux/in6.h linux/in.h" "$@"
level SOL_TCP TCP_ "linux/tcp.h" "$@"
