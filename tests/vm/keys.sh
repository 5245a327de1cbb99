#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Keys of the rendezvous: who needs one, who gets no link without, and how they are replaced and taken away.
#
# vm: --pair --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

NET=10.77.0.0/24
NET6=fd77::/64

count() { sovia stat value "$1"; }
ask() { socktool -"$1" ask "$SOVIA_PEER" 500"$1"; }
local_of() { address "$1" "$SOVIA_NODE"; }
remote_of() { address "$1" "$SOVIA_PEER"; }
logged() { dmesg | grep -q "$1"; }
# Bytes of a key, the same on both nodes: 32 times a letter.
bytes() { printf '%32s' '' | tr ' ' "$1"; }
key() { bytes "$1" | sovia key add "$2" "$3" "${@:4}" -; }            # LETTER ID PREFIX [own PREFIX]
both_key() { key "$@" && there key "$@"; }
none() { delete_all && there delete_all; }
delete_all() { sovia key show | awk '{ print $1 }' | sort -u | while read -r id; do sovia key delete "$id" || return; done; }
reload() { modprobe -r sovia && modprobe sovia; }
link_key() { awk -v state="$1" '$1 == state && $3 ~ /ffff/' /proc/net/sovia/link | grep -q "key=$2 "; }
link_is() { link_key "$1" "$2" || { cat /proc/net/sovia/link; return 1; }; }
no_link() { ! grep -q ' verbs ' /proc/net/sovia/link || { cat /proc/net/sovia/link; return 1; }; }
refused() { equal "$(socktool -4 connect "$SOVIA_PEER" 5004)" ECONNREFUSED; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
fails() { ! "$@"; }

# ---- what a key is ----

# As add_key(2) sees it.
add_key() { # DESCRIPTION LENGTH
	python3 -c 'import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
data = b"x" * int(sys.argv[2])
number = libc.syscall(248, b"sovia", sys.argv[1].encode(), data, len(data), -4)
print("ok" if number >= 0 else errno.errorcode[ctypes.get_errno()])' "$1" "$2"
}
keyctl_op() { # OPERATION NUMBER [ARGUMENT]
	python3 -c 'import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(libc.syscall(250, *map(int, sys.argv[1:])) < 0 and errno.errorcode[ctypes.get_errno()])' "$@"
}
number_of() { sovia key show | awk -v id="$1" '$1 == id { print $NF }'; }
# keyctl(2): 3 is REVOKE, 11 READ, 15 SET_TIMEOUT
kernel_revoke() { keyctl_op 3 "$(number_of "$1")"; }
timeout_of() { keyctl_op 15 "$(number_of "$1")" "$2"; }
unreadable() { ! keyctl_op 11 "$(number_of "$1")" 0 0; }

descriptions() {
	local text
	for text in '' 1 0:::/0 :::/0 x:::/0 12345678123456781:::/0 1: 1:10.0.0.0/33 1:10.0.0.1/8 1:fd77::1/64 1:::/129 \
		1:10.0.0.0/ 1:10.0.0.0/x 1:10.0.0/24 '1:10.0.0.0/8,' 1:10.0.0.0/8,10.0.0.1/8 '1:10.0.0.0/8,::/0,' '1:10.0.0.0/8 ' \
		1:fe80::1%eth0 1:10.0.0.0/08x 1:10.0.0.0/-1 1:10.0.0.0/0008; do
		equal "$(add_key "$text" 32)" EINVAL || { echo "of '$text'"; return 1; }
	done
	for text in 31 65 1000 0; do
		equal "$(add_key 1:192.0.2.0/24 "$text")" EINVAL || { echo "of $text bytes"; return 1; }
	done
	equal "$(sovia key show)" ''
}
accepted() {
	local status
	equal "$(add_key 1:192.0.2.0/24 64)" ok && equal "$(add_key 01:192.0.2.0/24,::/0 32)" EEXIST &&
		equal "$(add_key FfFfFfFfFfFfFfFf:192.0.2.7,198.51.100.0/24 32)" ok && equal "$(add_key a:fd00::,fd01::/8 40)" EINVAL &&
		equal "$(add_key a:fd00::/8,fd00::5 40)" ok && unreadable a &&
		equal "$(sovia key show | sed 's/ *#.*//')" 'a fd00::/8 own fd00::5/128 valid
ffffffffffffffff 192.0.2.7/32 own 198.51.100.0/24 valid
1 192.0.2.0/24 valid' && ! grep -q xxxx /proc/keys && ! dmesg | grep -q xxxx
	status=$?
	delete_all && equal "$(sovia key show)" '' && return $status
}
not_by_users() {
	key a 1 192.0.2.0/24 || return
	equal "$(nobody python3 -c 'import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(248, b"sovia", b"2:192.0.2.0/24", b"x" * 32, 32, -4)
print(errno.errorcode[ctypes.get_errno()])')" EPERM && fails nobody sovia key show && fails nobody sovia key delete 1 &&
		fails nobody sovia key revoke 1 && equal "$(sovia key show | wc -l)" 1
	local status=$?
	delete_all && return $status
}
too_many() {
	local status
	python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for i in range(1024):
    assert libc.syscall(248, b"sovia", b"1:192.0.%d.%d" % (i >> 8, i & 255), b"x" * 32, 32, -4) > 0, i' || return
	equal "$(add_key 9999:192.0.2.0/24 32) $(sovia key show | wc -l)" 'ENOSPC 1024'
	status=$?
	delete_all && return $status
}
# Those of a namespace are its own, and go with it.
another_namespace() {
	ip netns add box && bytes a | ip netns exec box sovia key add 5 $NET - && equal "$(ip netns exec box sovia key show | wc -l)" 1 &&
		equal "$(sovia key show)" '' && ask 4 && link_is UP 0
	local status=$?
	ip netns del box
	return $status
}
session_ends() { key a 1 $NET && keyctl_op 7 -4 && equal "$(sovia key show | wc -l)" 1; } # 7: CLEAR

# ---- links ----

keyed() { both_key a 11 $NET && both_key a 16 $NET6 && ask 4 && ask 6 && link_is UP 11 && equal "$(count bad_mac)" 0; }
# Those who have met without one end.
key_for_a_peer() { none && ask 4 && link_is UP 0 && watched ECONNRESET add_here -- && refused; }
add_here() { key a 11 $NET && eventually no_link; }
only_here() { refused && no_link && logged 'refuses: no common key'; }
only_there() { delete_all && there key a 11 $NET && refused && no_link; }
other_secret() {
	local before
	none && key a 11 $NET && there key b 11 $NET && before=$(count bad_mac) || return
	refused && no_link && [ "$(count bad_mac)" -gt "$before" ]
}
as_tcp() {
	sysctl -qw net.sovia.fallback=1 && there sysctl -qw net.sovia.fallback=1 && stop_server && start_server && kind_is 6
	local status=$?
	sysctl -qw net.sovia.fallback=0 && there sysctl -qw net.sovia.fallback=0 && stop_server && start_server && return $status
}
mended() { none && both_key a 11 $NET && ask 4 && link_is UP 11; }
most_exact() { none && both_key a 1 $NET && key b 2 "$(remote_of 4)" && there key b 2 "$(local_of 4)" && ask 4 && link_is UP 2; }
own_address() {
	none && both_key a 1 $NET && key b 3 $NET own "$(local_of 4)" && there key b 3 $NET own "$(remote_of 4)" && ask 4 && link_is UP 3
}
newest_common() { none && both_key a 1 $NET && both_key b 2 $NET && key c 3 $NET && there key d 4 $NET && ask 4 && link_is UP 2; }

# Overlap: the new one is added on one node and then on the other, nobody notices.
rotation() { mended && transferring add_both && link_is UP 11 && eventually reloaded_with 12; }
add_both() { key b 12 $NET && there key b 12 $NET && sleep 2; }
reloaded_with() { ss -HtK '( dport = :298 or sport = :298 )' >/dev/null; ask 4 && link_is UP 11 && restart && link_is UP "$1"; }
# Both forget the link.
restart() { key c 1 "$(remote_of 4)" && sovia key delete 1 && eventually no_link && eventually ask 4; }
old_one_goes() { transferring delete_old && link_is UP 12; }
delete_old() { sovia key delete 11 && there sovia key delete 11; }

# At once, on this node's word alone; the addresses stay closed.
ended_by() { mended && watched ECONNRESET "$@" -- && eventually no_link; }
revoke_here() { kernel_revoke 11 && eventually no_link; }
revoke_there() { there sovia key revoke 11 && eventually there no_link; }
delete_here() { sovia key delete 11 && eventually no_link; }
expire_here() { timeout_of 11 1 && eventually no_link; }
closed() { refused && no_link; }
closed_there() {
	refused && no_link && delete_all && refused && no_link
}
state_of() { equal "$(sovia key show | awk -v id="$1" '$1 == id { print $(NF - 2) }')" "$2"; }
replaced() { key e 11 $NET && there 'sovia key delete 11' && there key e 11 $NET && equal "$(sovia key show | wc -l)" 1 && ask 4; }
open_again() { none && ask 4 && link_is UP 0; }

recover_with_key() { mended && transferring break_lanes && link_is UP 11; }
break_lanes() {
	local before
	before=$(count link_recover)
	echo all >/sys/kernel/debug/sovia/break && eventually recovered "$before"
}
recovered() { [ "$(count link_recover)" -gt "$1" ]; }
serve_back() {
	rm -f "$WORK/echo"
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
# JOIN and AGAIN, and crossing exchanges.
both_ask() {
	local i
	mended && serve_back || return
	for i in {1..10}; do
		if [ $((i % 2)) = 0 ]; then ss -HtK '( dport = :298 or sport = :298 )' >/dev/null; else restart_both; fi
		ask 4 &
		there socktool -4 ask "$SOVIA_NODE" 5014 && wait $! && link_is UP 11 || return
	done
	rm -f "$WORK/echo"
}
restart_both() { key c 1 "$(remote_of 4)" && sovia key delete 1 && eventually no_link && eventually there no_link; }

# ---- strangers: root of the peer's host, or of another one that has its address, without the key ----

# Its module leaves the ports to a program.
leave() { stop_server; there 'sysctl -qw net.sovia.rendezvous=0' && ip netns list >/dev/null; }
said() { # WANTED OPTION...
	local wanted=$1 answer
	shift
	answer=$(there stranger hello "$(remote_of 4)" "$(local_of 4)" "$@" 2>&1)
	echo "$* : $answer"
	[ "$answer" = "$wanted" ]
}
has_no_key() { none && key a 11 $NET && there 'modprobe -r sovia' && said NO_KEY && said NO_KEY --key 12; }
has_only_the_number() {
	said 'OK, with a wrong MAC' --key 11 && said 'OK, then reset' --key 11 --confirm nothing &&
		said 'OK, then reset' --key 11 --confirm wrong && equal "$(count peer_up)" "$1"
}
has_the_key() { bytes a >"$WORK/bytes" && there "printf %s $(bytes a) >/tmp/bytes" && said OK --key 11 --bytes /tmp/bytes --confirm right; }
without_need() { delete_all && said OK && said NO_KEY --key 11; }

# A link in use, and one that recovers, whose peer's ports an impostor has.
impostor() { # CONFIRM WANTED
	local answer
	answer=$(there "stranger hello $(remote_of 4) $(local_of 4) --key 11 --confirm $1 2>&1")
	echo "$1: $answer"
	[ "$answer" = "$2" ]
}
in_use_unharmed() { mended && transferring attack_in_use && link_is UP 11; }
attack_in_use() {
	local before
	before=$(count link_down)
	there 'sysctl -qw net.sovia.rendezvous=0' && impostor nothing BUSY && impostor wrong BUSY && there 'sysctl -qw net.sovia.rendezvous=2' &&
		equal "$(count link_down)" "$before"
}
recovering_unharmed() { mended && transferring attack_recovering && link_is UP 11; }
# The lane is lost on both ends and comes back when the device does; meanwhile there is only the impostor.
attack_recovering() {
	local before status
	before=$(count link_down)
	there 'sysctl -qw net.sovia.rendezvous=0; echo all >/sys/kernel/debug/sovia/break' && there delete_device || return
	eventually link_key RECOVERING 11 && impostor nothing 'OK, then reset' && impostor wrong 'OK, then reset' &&
		link_key RECOVERING 11
	status=$?
	there add_device && there 'sysctl -qw net.sovia.rendezvous=2' && eventually link_key UP 11 &&
		equal "$(count link_down)" "$before" && return $status
}

limit 150
check 'no wrong description, nor length'			descriptions
check 'right ones'						accepted
check 'only administrators have keys'				not_by_users
check 'there are not too many'					too_many
check 'a server on the peer'					start_server
check 'keys of another namespace'				another_namespace
check 'a key outlives its keyring'				session_ends
check 'both have the key'					keyed
check 'a key for who was met without'				key_for_a_peer
check 'only this node has one'					only_here
check '... which is TCP elsewhere'				as_tcp
check 'only the other one has'					only_there
check 'each has another one, of the same number'		other_secret
check 'both have it again'					mended
check 'the most exact prefix counts'				most_exact
check '... also of the own address'				own_address
check 'the newest that both have'				newest_common
check 'a newer one is added'					rotation
check 'the older one is deleted'				old_one_goes
check 'a lane recovers'						recover_with_key
check 'both ask at once'					both_ask
check 'a key is revoked'					ended_by revoke_here
check '... and keeps all out'					closed
check '... and is shown'					state_of 11 revoked
check 'another one takes its place'				replaced
check 'the other node revokes it'				ended_by revoke_there
check '... and keeps this one out'				closed_there
check 'a key expires'						ended_by expire_here
check '... and keeps all out'					closed
check '... and is shown'					state_of 11 expired
check 'a key is deleted'					ended_by delete_here
check 'no key is needed'					open_again
check_device 'a link in use'					in_use_unharmed
check_device 'a link that recovers'				recovering_unharmed
check 'the peer leaves'						leave
check 'a stranger has no key'					has_no_key
check '... or has only its number'				has_only_the_number "$(count peer_up)"
check '... or has it'						has_the_key
check '... or needs none'					without_need
finish
