#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What Wireshark's dissector says of packets on the wire, compared with what the programs did and the module
# counted; other programs' packets, and packets that were cut or changed at random.
#
# vm: --pair --timeout 1200 --append "kunit.enable=0 sovia.fallback=0"
# lab: only packets of software devices can be captured
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

SCRIPTS=(sovia.lua sovia_rendezvous.lua)
# One line for each frame; what it has several of is separated by "|".
FIELDS=(
	frame.number ip.src ipv6.src sovia sovia.type sovia.len sovia.sport sovia.dport sovia.code sovia.compact sovia.cm
	sovia.hello.window sovia.hello.payload sovia.hello.peer_id sovia.reject.code sovia.request_in sovia.time
	sovia.conn.saddr sovia.conn.daddr sovia.rdv.type sovia.rdv.code sovia.rdv.window sovia.rdv.saddr sovia.rdv.nonce
	tcp.payload infiniband.bth.opcode iwarp_rdma.opcode _ws.expert.message
)
DATA=1 CONN=6 ACCEPT=7 REFUSE=8 RESET=9 PARK=21
HELLO=1 ANSWER=2
NO_LISTENER=1 ABORT=5 NO_LINK=8

count() { sovia stat value "$1"; }
both_count() { echo "$(count "$1") $(there sovia stat value "$1")"; }
parameter() { echo "$2" >"/sys/module/sovia/parameters/$1" && there "echo $2 >/sys/module/sovia/parameters/$1"; }

# ---- captures ----

capture() { # NAME INTERFACE [COMMAND...]
	local name=$1 interface=$2
	shift 2
	"$@" tcpdump -Z root -U -B 16384 -i "$interface" -w "$WORK/$name" 2>"$WORK/$name.log" &
	echo $! >"$WORK/$name.pid"
	eventually grep -q listening "$WORK/$name.log"
}

# All that was sent has been captured when nothing more is.
captured() {
	local size=-1
	until [ "$size" = "$(stat -c %s "$WORK/$1")" ]; do
		size=$(stat -c %s "$WORK/$1")
		sleep 1
	done
	kill "$(cat "$WORK/$1.pid")"
	eventually grep 'packets dropped by kernel' "$WORK/$1.log" && grep -q '^0 packets dropped' "$WORK/$1.log"
}

# Later versions run no scripts for root.
tshark_with() {
	local script scripts=()
	for script in "${SCRIPTS[@]}"; do
		scripts+=(-X "lua_script:$WORK/$script")
	done
	HOME=/nonexistent setpriv --reuid=nobody --regid=nogroup --clear-groups tshark -n "${scripts[@]}" "$@"
}

decoded() { # NAME
	local field options=()
	for field in "${FIELDS[@]}"; do
		options+=(-e "$field")
	done
	tshark_with -r "$WORK/$1" -T fields -E occurrence=a -E 'aggregator=|' "${options[@]}" >"$WORK/$1.frames"
}

# The frames of a capture for which an awk condition holds; fields are variables, with _ for dots.
frames() { # NAME CONDITION [EXPRESSION]
	local field i=0 names=''
	for field in "${FIELDS[@]}"; do
		i=$((i + 1))
		names+="${field//./_} = \$$i; "
	done
	awk -F '\t' -v OFS="${SEPARATOR:- }" "{ $names from = ip_src ipv6_src; if ($2) print ${3:-frame_number} }" "$WORK/$1.frames"
}

# The same for messages, of which a frame may have several.
messages() { # NAME CONDITION [EXPRESSION]
	SEPARATOR=$'\t' frames "$1" 'sovia_type != ""' 'from, sovia_type, sovia_len, sovia_sport, sovia_dport, sovia_code, sovia_compact' |
		awk -F '\t' "{ n = split(\$2, types, \"|\"); split(\$3, lens, \"|\"); split(\$4, sports, \"|\"); split(\$5, dports, \"|\")
			split(\$6, codes, \"|\"); from = \$1; compact = \$7 != \"\"
			for (i = 1; i <= n; i++) {
				type = types[i]; len = lens[i]; sport = sports[i]; dport = dports[i]; code = codes[i]
				if ($2) print ${3:-type}
			} }"
}

total() { awk '{ sum += $1 } END { print sum + 0 }'; }

# ---- what happens ----

ASKED=(1 5000 200000)

prepare() {
	chmod 755 "$WORK" && install -m 644 "${SCRIPTS[@]/#/$HERE/../../userland/wireshark/}" "$WORK" &&
		parameter probe_interval 3600 && start_server && capture first "$SOVIA_NETDEV"
}

connections() {
	local size
	for size in "${ASKED[@]}"; do
		socktool -4 ask "$SOVIA_PEER" 5004 "$size" || return
	done
	socktool -6 ask "$SOVIA_PEER" 5006 30000 && equal "$(socktool -4 connect "$SOVIA_PEER" 5999)" ECONNREFUSED &&
		PYTHONPATH=$HERE/lib python3 -c 'import socket, struct, sovia, sys
s = sovia.socket(socket.AF_INET)
s.connect((sys.argv[1], 5004))
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
s.close()' "$SOVIA_PEER"
}

counted() {
	captured first || return
	local name
	for name in verbs_{tx,rx}_{msgs,bytes} compact_tx reset_tx link_up; do
		both_count "$name" >"$WORK/$name"
	done
}

state_is() { [ "$(awk '{ print $1 }' /proc/net/sovia/link | sort -u)" = "$1" ]; }
both_are() { state_is "$1" && there state_is "$1"; }
link4_is_gone() { ! grep ":$(address 4 "$SOVIA_NODE") " /proc/net/sovia/link; }

reload() { modprobe -r sovia && modprobe sovia "$@"; }

# Lanes die; links are parked; the other kernel is another one.
lanes_end() {
	stop_server && reload probe_interval=1 && there reload probe_interval=1 && start_server &&
		capture second "$SOVIA_NETDEV" && socktool -4 ask "$SOVIA_PEER" 5004 1000 && socktool -6 ask "$SOVIA_PEER" 5006 1000 &&
		socktool break 1 && parameter idle_links 0 && eventually both_are PARKED && parameter idle_links 64 &&
		socktool -4 ask "$SOVIA_PEER" 5004 1000 && socktool -6 ask "$SOVIA_PEER" 5006 1000 || return
	echo $(($(count link_recover) + $(count link_resume))) >"$WORK/resumed"
	stop_server && there reload && start_server && eventually link4_is_gone && captured second
}

# ---- checks ----

# Each SEND of the fabric has a message, or a part of one.
all_known() { # NAME
	local sends='(infiniband_bth_opcode != "" && infiniband_bth_opcode <= 5 || iwarp_rdma_opcode ~ /0x03|^3/)'
	[ "$(frames "$1" "$sends" | wc -l)" -gt 50 ] && equal "$(frames "$1" "$sends && sovia == \"\"")" ''
}
nothing_wrong() { # NAME
	local right='Illegal checksum value|RFC 5044|^Reject bit|Connection (establish|finish|reset)|REFUSE: |RESET: |This frame |Duplicate ACK|D-SACK|New fragment overlaps old data|[Kk]eep-alive|[Rr]ejected'
	equal "$(frames "$1" '_ws_expert_message != ""' _ws_expert_message | tr '|' '\n' | grep -vE "$right" | sort | uniq -c)" ''
}

# Both nodes counted what both directions show.
from_node() { echo "(from == \"$(address 4 "$1")\" || from == \"$(address 6 "$1")\")"; }
as_counted() {
	local here there
	here=$(from_node "$SOVIA_NODE") there=$(from_node "$SOVIA_PEER")
	equal "$(messages first "$here" | wc -l) $(messages first "$there" | wc -l)" "$(cat "$WORK/verbs_tx_msgs")" &&
		equal "$(messages first "$there" | wc -l) $(messages first "$here" | wc -l)" "$(cat "$WORK/verbs_rx_msgs")" &&
		equal "$(messages first "$here" len | total) $(messages first "$there" len | total)" "$(cat "$WORK/verbs_tx_bytes")" &&
		equal "$(messages first "$here && compact" | wc -l) $(messages first "$there && compact" | wc -l)" \
			"$(cat "$WORK/compact_tx")"
}
compact_or_not() {
	[ "$SOVIA_DEVICE" = siw ] && { equal "$(messages first compact)" ''; return; }
	[ "$(messages first compact | wc -l)" -gt 5 ]
}
bytes_of_programs() {
	local asked
	asked=$(printf '%s\n' "${ASKED[@]}" | total)
	equal "$(messages first "type == $DATA && dport == 5004" len | total) $(messages first "type == $DATA && sport == 5004" len | total)" \
		"$asked $asked" &&
		equal "$(messages first "type == $DATA && dport == 5006" len | total) $(messages first "type == $DATA && sport == 5006" len | total)" \
			'30000 30000'
}
connections_seen() {
	equal "$(messages first "type == $CONN" dport | sort | uniq -c | xargs)" '4 5004 1 5006 1 5999' &&
		equal "$(messages first "type == $ACCEPT" sport | sort | uniq -c | xargs)" '4 5004 1 5006' &&
		equal "$(messages first "type == $REFUSE" 'sport, code')" "5999 $NO_LISTENER" &&
		equal "$(messages first "type == $RESET" | wc -l)" "$(tr ' ' '\n' <"$WORK/reset_tx" | total)" &&
		equal "$(messages first "type == $RESET && dport == 5004 && code == $ABORT" | wc -l)" 1
}
addresses_seen() {
	equal "$(frames first 'sovia_conn_saddr != ""' 'sovia_conn_saddr, sovia_conn_daddr' | sort | uniq -c | xargs)" \
		"5 ::ffff:$(address 4 "$SOVIA_NODE") ::ffff:$(address 4 "$SOVIA_PEER") 1 $(address 6 "$SOVIA_NODE") $(address 6 "$SOVIA_PEER")"
}
# Each CONN has one answer, after a time.
answered() {
	local answers="(sovia_type ~ /(^|[|])($ACCEPT|$REFUSE)([|]|\$)/)"
	equal "$(frames first "$answers && sovia_time > 0" | wc -l)" 6 &&
		equal "$(frames first "$answers" sovia_request_in | sort -u | wc -l)" 6
}
hellos_seen() {
	local payload
	payload=$(cat /sys/module/sovia/parameters/payload)
	equal "$(frames first 'sovia_cm ~ /REQ|REP/' 'sovia_cm, sovia_hello_payload' | sort | uniq -c | xargs)" \
		"$(cut -d ' ' -f 1 "$WORK/link_up") REP $payload $(cut -d ' ' -f 2 "$WORK/link_up") REQ $payload"
}
introduced() {
	local window
	window=$(awk '$2 == "SOVIA_WINDOW_MAX" { print $3 }' ../../include/sovia/wire.h)
	equal "$(frames first "sovia_rdv_type == $HELLO" 'sovia_rdv_window, sovia_rdv_saddr' | sort)" \
		"$(printf '%s\n' "$window ::ffff:$(address 4 "$SOVIA_NODE")" "$window $(address 6 "$SOVIA_NODE")" | sort)" &&
		equal "$(frames first "sovia_rdv_type == $ANSWER && sovia_rdv_code == 0" | wc -l)" 2
}

# REPs to requests that name the link.
resumed() {
	local requests
	requests=$(frames second 'sovia_cm == "REQ" && sovia_hello_peer_id !~ /^0x0+$/' | tr '\n' '|')
	equal "$(frames second "sovia_cm == \"REP\" && sovia_request_in ~ /^(${requests%|})\$/" | wc -l)" "$(cat "$WORK/resumed")"
}
parked() { [ "$(messages second "type == $PARK" | wc -l)" -ge 2 ]; }
rejected() { [ "$(frames second "sovia_cm == \"REJ\" && sovia_reject_code == $NO_LINK" | wc -l)" -ge 1 ]; }

# ---- the rendezvous in small segments ----

# In a namespace without the module's listener, on its port.
in_pieces() {
	local hello answer
	hello=$(frames first "sovia_rdv_type == $HELLO" tcp_payload | head -n 1)
	answer=$(frames first "sovia_rdv_type == $ANSWER" tcp_payload | head -n 1)
	ip netns add pieces && ip -n pieces link set lo up && capture pieces lo ip netns exec pieces || return
	ip netns exec pieces python3 -c 'import socket, sys, time
listener = socket.create_server(("", 298))
asker = socket.create_connection(("127.0.0.1", 298))
answerer = listener.accept()[0]
for s, message in zip((asker, answerer), sys.argv[1:]):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    message = bytes.fromhex(message)
    while message:
        s.send(message[:30])
        message = message[30:]
        time.sleep(0.01)' "$hello" "$answer" && captured pieces && decoded pieces
}
pieces_fit() {
	local what='sovia_rdv_type, sovia_rdv_window, sovia_rdv_saddr, sovia_rdv_nonce'
	[ "$(frames pieces 'tcp_payload != ""' | wc -l)" -ge 10 ] &&
		equal "$(frames pieces 'sovia_rdv_type != ""' "$what")" \
			"$(frames first "sovia_rdv_type ~ /$HELLO|$ANSWER/" "$what" | head -n 2)" && nothing_wrong pieces
}

# ---- others ----

# With a queue pair that the connection manager sets up, and one of which the capture says nothing.
foreign_run() { # ARGUMENT...
	there "setsid stdbuf -oL ib_send_bw $* -d $SOVIA_RDMA -n 5 -s 5000 >/tmp/bw.log 2>&1 & for i in \$(seq 100); do grep -q Waiting /tmp/bw.log && exit 0; sleep 0.1; done; cat /tmp/bw.log; exit 1" &&
		ib_send_bw "$@" -d "$SOVIA_RDMA" -n 5 -s 5000 "$SOVIA_PEER"
}
foreign() {
	capture foreign "$SOVIA_NETDEV" && there 'setsid rping -s -C 10 >/tmp/rping.log 2>&1 & sleep 1' &&
		rping -c -a "$(address 4 "$SOVIA_PEER")" -C 10 || return
	# ib_send_bw hung once with siw
	[ "$SOVIA_DEVICE" = siw ] || { foreign_run -R && foreign_run; } || return
	captured foreign && decoded foreign
}
not_ours() {
	[ "$(frames foreign 'infiniband_bth_opcode != "" && infiniband_bth_opcode <= 5 || iwarp_rdma_opcode != ""' | wc -l)" -gt 10 ] &&
		equal "$(frames foreign 'sovia != ""')" ''
}

# A capture that begins when the links are there.
late() {
	local after
	after=$(frames first 'sovia_cm ~ /REP/' | tail -n 1)
	editcap -r "$WORK/first" "$WORK/late" "$((after + 1))-999999" && decoded late || return
	[ "$(messages late "type == $CONN" | wc -l)" -ge 1 ] &&
		equal "$(messages late "type == $CONN" 'sport, dport' | sort)" \
			"$(awk -F '\t' -v after="$after" '$1 > after' "$WORK/first.frames" >"$WORK/rest.frames"
				messages rest "type == $CONN" 'sport, dport' | sort)"
}

# Changed at random, or cut.
mangled() {
	local how list=()
	mergecap -a -w "$WORK/all" "$WORK"/{first,second,pieces} || return
	for how in '-E 0.0003' '-E 0.003' '-E 0.02' '-E 0.06' '-s 60' '-s 90' '-s 170'; do
		# shellcheck disable=SC2086 # two words
		editcap --seed 1 $how "$WORK/all" "$WORK/all $how" || return
		list+=("$WORK/all $how")
	done
	mergecap -a -w "$WORK/mangled" "${list[@]}" && decoded mangled
}
no_lua_error() {
	[ "$(frames mangled 'sovia != ""' | wc -l)" -gt 100 ] && ! frames mangled '_ws_expert_message ~ /Lua/' _ws_expert_message | grep .
}

limit 180
check 'a server on the peer, and a capture'			prepare
check 'connections of all kinds'				connections
check 'counters are read'					counted
check 'tshark reads it'						decoded first
check 'each packet is known'					all_known first
check 'nothing is malformed'					nothing_wrong first
check 'messages, bytes and compact ones are as counted'		as_counted
check 'messages are compact where they can be'			compact_or_not
check 'all bytes of programs'					bytes_of_programs
check 'each connection, with its ports and its end'		connections_seen
check 'the addresses of CONN'					addresses_seen
check 'requests and their answers'				answered
check 'hellos'							hellos_seen
check 'the rendezvous'						introduced
check 'lanes die, are parked, and are refused'			lanes_end
check 'tshark reads that'					decoded second
check 'each packet of it is known'				all_known second
check 'nothing of it is malformed'				nothing_wrong second
check 'each link that was resumed'				resumed
check 'parked links'						parked
check 'a link that is not known any more'			rejected
check 'a rendezvous in small segments'				in_pieces
check '... is the same'						pieces_fit
check 'others use RDMA'						foreign
check '... which is not taken for ours'				not_ours
if [ "$SOVIA_DEVICE" = siw ]; then
	skip 'a capture that begins later' 'Wireshark needs the set-up of MPA'
else
	check 'a capture that begins later'			late
fi
check 'packets are changed at random, and cut'			mangled
check '... without an error of the scripts'			no_lua_error
finish
