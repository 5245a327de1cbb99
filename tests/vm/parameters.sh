#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The module's parameters at their bounds: connections work, within the host and to another node.  Values beyond the
# bounds are refused when the module is loaded and when they are written, and the log gives the reason.
#
# vm: --pair --timeout 600 --append "kunit.enable=0 sovia.fallback=0 sovia.loop_lane=1"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

PARAMETERS=/sys/module/sovia/parameters

start_echo() {
	setsid socktool echo 5014 "$WORK/echo" >/dev/null 2>&1 &
	eventually test -e "$WORK/echo"
}
stop_all() { rm -f "$WORK/echo" && eventually no_echo && stop_server; }

# Both nodes have these, and bytes go both ways at once, within the host and over the wire.
works() { # PARAMETER=VALUE...
	stop_all && modprobe -r sovia || return
	modprobe sovia "$@" || { dmesg | tail -n 5; return 1; }
	there "modprobe -r sovia && modprobe sovia $*" && start_server && start_echo || return
	socktool ask 127.0.0.1 5014 3000000 && socktool -6 ask "$SOVIA_PEER" 5006 20000 && socktool ask "$SOVIA_PEER" 5004 1000000
}

# PARAMETER=VALUE, with which the module does not load.
refuses() {
	dmesg --clear
	! modprobe sovia "$1" || { modprobe -r sovia; echo "loaded with $1"; return 1; }
	dmesg | grep "sovia: ${1%%=*} "
}

# The same when it is loaded, for writable parameters; the value does not change.
keeps() {
	local file=$PARAMETERS/${1%%=*} before
	before=$(cat "$file")
	dmesg --clear
	! echo "${1#*=}" >"$file" || { echo "written: $1"; return 1; }
	equal "$(cat "$file")" "$before" && dmesg | grep "sovia: ${1%%=*} "
}

GOOD=(
	window=1
	'window=1 ack_threshold=1024'
	'window=2 ack_threshold=1 payload=2048'
	'window=1024 ack_threshold=1 payload=65536'
	'window=1024 ack_threshold=1024 payload=65536 lanes=16 cqs=64'
	'window=1 payload=2048 lanes=16'
	'probe_interval=0 recovery_timeout=86400 max_orphans=1 mem=1024,1024'
	'probe_interval=86400 recovery_timeout=0 max_orphans=2147483647 mem=1000000000000,1000000000000'
	'probe_interval=1 max_links=1 mem=0,0'
	'max_links=4294967295 service_port=1 ack_timeout=10'
	'service_port=1023 ack_timeout=31'
	'tos=0' 'tos=256'
	'verbs_namespaces=0' 'verbs_namespaces=2'
	family=45
)
BAD_AT_LOAD=(lanes=0 lanes=17 cqs=0 cqs=65 cqs=4294967295 service_port=0 service_port=1024 service_port=7684 service_port=65536
	ack_timeout=0 ack_timeout=9 ack_timeout=32 tos=257 verbs_namespaces=3)
# shellcheck disable=SC2054 # one element
BAD=(window=0 window=1025 window=-1 window=many ack_threshold=0 ack_threshold=1025 payload=0 payload=2047 payload=65537
	probe_interval=86401 probe_interval=4294967295 recovery_timeout=86401 max_orphans=2147483648 mem=1,1 mem=1023 fallback_wait=60001)

limit 150
for values in "${GOOD[@]}"; do
	# shellcheck disable=SC2086 # several
	check "$values" works $values
done
check 'all sockets are closed'	stop_all
check '... and the module unloads'	modprobe -r sovia
for values in "${BAD_AT_LOAD[@]}" "${BAD[@]}"; do
	check "$values is refused" refuses "$values"
done
check 'the module loads'	modprobe sovia
for values in "${BAD[@]}"; do
	check "$values is not written" keeps "$values"
done
check 'connections work as before'	works
check 'all ends'		stop_all
finish
