#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make btf: with its types in the module bpftrace knows the arguments of its functions, and its structures.
#
# vm: --mem 2048 --timeout 1800 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

PATH=$PWD/lib:$PATH
ROOT=$(realpath ../..)
ADD=$ROOT/scripts/add-btf
WORK=$(mktemp -d)
PORT=5051
# in the order of the network
PORT_ON_WIRE=$((PORT % 256 * 256 + PORT / 256))

refuses() { # WHY FILE...
	! "$ADD" "${@:2}" >"$WORK/said" 2>&1 && grep -q -- "$1" "$WORK/said"
}
# The module is built.
make_btf() { make -C "$WORK" -f "$ROOT/Makefile" -o host btf; }
adds() {
	local name
	make_btf || return
	for name in sovia sovia_diag; do
		[ "$(readelf -SW "$WORK/$name.ko" | grep -c ' \.BTF ')" = 1 ] || return
	done
}
loads() {
	modprobe inet_diag && rmmod sovia && insmod "$WORK/sovia.ko" && insmod "$WORK/sovia_diag.ko" &&
		test -r /sys/kernel/btf/sovia && test -r /sys/kernel/btf/sovia_diag
}
traces() {
	local tracer
	stdbuf -oL bpftrace -e 'BEGIN { printf("begun\n"); }
		kfunc:sovia:sovia_connect { printf("length %d\n", args->addr_len); }
		kretfunc:sovia:sovia_connect { printf("port %d\n", ((struct sovia_sock *)args->sk)->inet.sk.__sk_common.skc_dport); }' \
		>"$WORK/traced" 2>&1 &
	tracer=$!
	until grep -q begun "$WORK/traced"; do
		kill -0 $tracer 2>/dev/null || { cat "$WORK/traced"; return 1; }
		sleep 0.2
	done
	socktool connect 127.0.0.1 $PORT
	kill -INT $tracer
	wait $tracer
}

cp "$(modinfo -F filename sovia)" "$(modinfo -F filename sovia_diag)" "$WORK"
ln -s "$ROOT/scripts" "$WORK/scripts"
sed 's/vermagic=6/vermagic=5/' "$WORK/sovia.ko" >"$WORK/other.ko"
strip -g -o "$WORK/stripped.ko" "$WORK/sovia.ko"
limit 900
check 'without a file: usage'			refuses usage
check 'a module of another kernel is refused'	refuses 'is for 5' "$WORK/other.ko"
check '... and one without debugging information' refuses 'no debugging information' "$WORK/stripped.ko"
check 'types are added'				adds
check '... once'				adds
check 'the modules load with them'		loads
socktool hold-listener $PORT "$WORK/deaf" >"$WORK/listener" 2>&1 &
check 'a listener'				eventually test -e "$WORK/deaf"
check 'bpftrace compiles'			traces
check '... with arguments of functions'		grep '^length 16$' "$WORK/traced"
check '... and with structures'			grep "^port $PORT_ON_WIRE\$" "$WORK/traced"
kill %1
finish
