#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What sovia.service does at boot: keys, rules and settings are in force before another kernel is met, which asks
# all the time here; and if one of them is wrong, none is met.
#
# vm: --pair --timeout 900 --append "kunit.enable=0 sovia.fallback=0"
# lab: it writes to /etc
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

START=$PWD/../../.build/userland/libexec/sovia/start
KEYS=/etc/sovia/keys.d
RULES=/etc/sovia/rules
SYSCTL=/etc/sysctl.d/sovia.conf
OPTIONS=/etc/modprobe.d/sovia-options.conf
NET=10.77.0.0/24
GROUP=/sys/fs/cgroup/later
HEX=$(printf '%064d' 7)

get() { cat "/proc/sys/net/sovia/$1"; }
is() { equal "$(get "$1")" "$2"; }
unloads() { ! [ -e /sys/module/sovia ] || modprobe -r sovia; }
unset_all() { rm -rf /etc/sovia $SYSCTL $OPTIONS && mkdir -p $KEYS; }
write_key() { (umask 077 && printf '%s\n' "${@:2}" >"$KEYS/$1"); } # ID LINE...
write_rules() { printf '%s\n' "$@" >$RULES; }
# As at boot, when there is no module yet.
boot() { eventually unloads && rm -rf /run/sovia && "$START"; }
again() { "$START"; }

rules_are() { equal "$(sovia rule show)" "$1"; }
keys_are() { equal "$(sovia key show | sed 's/ *#.*//')" "$1"; }
# Does the kernel listen where others ask?
answers() { there "python3 -c 'import socket; socket.create_connection((\"$SOVIA_NODE\", 298), 5)'"; }
listens() { grep -q '^ *[0-9]*: [0-9A-F]*:012A .* 0A ' /proc/net/tcp /proc/net/tcp6; }
link_key() { awk '$1 == "UP" && $3 ~ /ffff/' /proc/net/sovia/link | grep -q "key=$1 "; }

# The other node asks this one, again and again.
ask() { there "rm -f /tmp/enough; setsid sh -c 'until [ -e /tmp/enough ]; do socktool -4 connect $SOVIA_NODE 5010; sleep 0.05; done' >/dev/null 2>&1 &"; }
enough() { there 'touch /tmp/enough'; }
asked_there() { there 'dmesg -C; sovia peer flush'; }
met_without_key() { there 'dmesg | grep "refuses: no common key"'; }

nothing_set() { unset_all && boot && is rendezvous 2 && keys_are '' && rules_are '' && eventually listens && [ ! -e /run/sovia/held ]; }

settings() {
	unset_all
	printf '%s\n' 'net.sovia.rendezvous = 1' 'net.sovia.idle_links = 3' 'net/sovia/netfilter=1' >$SYSCTL
	boot && is rendezvous 1 && is idle_links 3 && is netfilter 1
}
# A later line counts, as a later file.
later_setting() { echo '  -net.sovia.rendezvous=0' >>$SYSCTL && boot && is rendezvous 0 && ! listens; }
options() { unset_all && echo 'options sovia max_links=77 rendezvous=1' >$OPTIONS && boot && is rendezvous 1 && equal "$(cat /sys/module/sovia/parameters/max_links)" 77; }
sysctl_first() { echo 'net.sovia.rendezvous = 2' >$SYSCTL && boot && is rendezvous 2; }

all_set() {
	unset_all
	write_key 11 '# of this network' "peer $NET own 10.77.0.0/16" "key $HEX" 'peer fd77::/64'
	write_rules '# rules' 'in port 22 only-tcp'
	echo 'net.sovia.idle_links = 5' >$SYSCTL
	boot && is rendezvous 2 && is idle_links 5 && rules_are 'in port 22 only-tcp' &&
		keys_are "11 fd77::/64 valid
11 $NET own 10.77.0.0/16 valid"
}
met() { eventually link_key 11; }
never_without() { ! met_without_key; }
# By hand, and so without what it should have been loaded with: the check above would see that.
by_hand() { enough && unset_all && eventually unloads && asked_there && ask && modprobe sovia && eventually met_without_key; }

# Another kernel is not met, and it is said what is wrong.
closed() { # STEP COMPLAINT
	local log status
	log=$(boot 2>&1)
	status=$?
	echo "$log"
	equal $status 1 && is rendezvous 0 && ! listens && ! answers && grep -q "$2" <<<"$log" && equal "$(cat /run/sovia/held)" "$1" &&
		sovia doctor | grep "^FAIL *boot .*$1"
}
wrong_key() { unset_all && write_key "$1" "${@:3}" && closed "keys of $KEYS" "$KEYS/$1.*$2"; } # ID COMPLAINT LINE...
open_key() { unset_all && write_key 11 "peer $NET" "key $HEX" && chmod 640 $KEYS/11 && closed "keys of $KEYS" 'chmod 600'; }
# The others are loaded.
one_of_two() { unset_all && write_key 11 nonsense && write_key 12 "peer $NET" "key $HEX" && closed "keys of $KEYS" "$KEYS/11:1" && keys_are "12 $NET valid"; }
wrong_rule() { unset_all && write_key 11 "peer $NET" "key $HEX" && write_rules 'in port 22 only-tcp' "$1" && closed "rules of $RULES" "$RULES:2:" && keys_are "11 $NET valid"; }
wrong_setting() { unset_all && echo 'net.sovia.netfilter = 7' >$SYSCTL && closed 'net.sovia of sysctl.d' 'netfilter 7: Invalid argument'; }
unknown_setting() { unset_all && echo 'net.sovia.no_such = 1' >$SYSCTL && closed 'net.sovia of sysctl.d' 'no_such: no such setting'; }
# Not ours.
other_setting() { unset_all && printf '%s\n' nonsense 'kernel.no_such = 1' 'net.sovia.idle_links = 8' >$SYSCTL && boot && is idle_links 8 && is rendezvous 2; }
wrong_rendezvous() { unset_all && echo 'net.sovia.rendezvous = 7' >$SYSCTL && closed rendezvous 'rendezvous 7'; }
local_works() {
	socktool echo 5010 "$WORK/echo" &
	eventually test -e "$WORK/echo" && socktool ask 127.0.0.1 5010
	local status=$?
	rm -f "$WORK/echo"
	wait $! && return $status
}
mended() { unset_all && again && is rendezvous 2 && eventually listens && [ ! -e /run/sovia/held ] && ! sovia doctor | grep "^FAIL *boot"; }

group_missing() {
	local log
	unset_all
	write_rules 'out port 7 deny' "cgroup $GROUP deny" 'out port 9 deny'
	log=$(boot 2>&1) || { echo "$log"; return 1; }
	grep "$RULES:2:8: there is no such control group yet" <<<"$log" && is rendezvous 2 && rules_are 'out port 7 deny
out port 9 deny'
}
group_there() {
	mkdir $GROUP && sovia rule load && rules_are "out port 7 deny
cgroup $GROUP deny
out port 9 deny"
	local status=$?
	rmdir $GROUP
	return $status
}
no_group() { sovia rule replace $RULES; }

# Whoever loads the module chooses; what is set holds nevertheless.
loaded_before() {
	unset_all
	write_key 11 "peer $NET" "key $HEX"
	write_rules 'in port 22 only-tcp'
	echo 'net.sovia.idle_links = 6' >$SYSCTL
	eventually unloads && rm -rf /run/sovia && modprobe sovia rendezvous=1 && again && is rendezvous 1 && is idle_links 6 &&
		keys_are "11 $NET valid" && rules_are 'in port 22 only-tcp'
}
twice() { again && keys_are "11 $NET valid" && rules_are 'in port 22 only-tcp'; }
stays() { write_rules nonsense; ! again && rules_are 'in port 22 only-tcp' && is rendezvous 1; }

check 'the guest has cgroups'			eval 'mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup'
check 'without any of it other nodes are met'	nothing_set
check 'sysctl.d is applied'			settings
check '... a later line, or file, counts'	later_setting
check 'what modprobe.d has of it'		options
check '... sysctl.d counts more'		sysctl_first

check 'the other node has a key'		there "printf '%s' '$HEX' | python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' | sovia key add 11 $NET -"
check '... and asks all the time'		ask
check 'keys, rules and settings are set'	all_set
check '... the other node is met'		met
check '... and never was without the key'	never_without
check 'without them it sees that'		by_hand
check '... and asks on'				eval 'enough; asked_there; ask'

check 'a key that others can read'		open_key
check 'a key without a peer'			wrong_key 11 'no peer' "key $HEX"
check 'a peer without a key'			wrong_key 11 'no key' "peer $NET"
check 'a key that is too short'			wrong_key 11 'not 32 to 64 bytes' "peer $NET" "key ${HEX:2}"
check 'one that is no number'			wrong_key 11 ':2: not 64 to 128' "peer $NET" "key ${HEX:1}x"
check 'a prefix that is none'			wrong_key 11 'wrong number or prefix' "peer 10.77.0.1/24" "key $HEX"
check 'a name that is no number'		wrong_key node-b 'not the number of a key' "peer $NET" "key $HEX"
check 'one of two keys'				one_of_two
check 'a rule with a fault'			wrong_rule 'in port 22 only'
check 'a rule of a user that is not known'	wrong_rule 'uid nosuchuser deny'
check '... connections within the host work'	local_works
check 'a setting that is wrong'			wrong_setting
check 'one that there is not'			unknown_setting
check 'one of the last step'			wrong_rendezvous
check 'what is wrong elsewhere is not ours'	other_setting
check 'one of the last step, again'		wrong_rendezvous
check 'it is mended without a reboot'		mended
check 'a control group that is missing'		group_missing
check '... its rule holds later'		group_there
deny 'rules by hand must have it'		no_group
check 'a module that has been loaded before'	loaded_before
check '... again'				twice
check '... rules with a fault change nothing'	stays
check 'the other one stops'			enough
finish
