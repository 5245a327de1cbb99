#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Pages of receives that stay mapped for the device (kmod/core/page.c), where the kernel unmaps at a device's removal those that
# sockets hold: behind an IOMMU few are mapped for what is received; a socket keeps what it has received when the device goes,
# for which nothing is mapped any more then.  (On the debug kernel, without an IOMMU, DMA_API_DEBUG looks at each of them.)
#
# vm: --pair --kernel 6.12 --profile mlx5 --dma iommu --timeout 600 --append kunit.enable=0
# lab: the devices are tests/devprofile's, whose memory is mapped
# shellcheck disable=SC2016 # much of this is for the shell of the other node
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

TRACING=/sys/kernel/tracing
BYTES=$((32 << 20))
[ -e $TRACING/events/iommu ] || BYTES=$((2 << 20))

# What an IOMMU maps and unmaps is counted each in a trace of its own.
count_from_now() {
	local what
	for what in map unmap; do
		[ ! -d $TRACING/instances/$what ] || rmdir $TRACING/instances/$what || return
		mkdir $TRACING/instances/$what && echo 1 >$TRACING/instances/$what/events/iommu/$what/enable || return
	done
}
counted() { awk '/^(entries|overrun):/ { sum += $2 } END { print sum }' $TRACING/instances/"$1"/per_cpu/cpu*/stats; }
transfers() { socktool ask "$SOVIA_PEER" 5004 "$1"; }
# Of what is received alone, where an IOMMU tells.
few_are_mapped() {
	local mapped
	[ -e $TRACING/events/iommu ] || { transfers $BYTES; return; }
	there 'cd '"$HERE"'/lib; setsid python3 -c "
import socket, sovia
s = sovia.socket(socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((\"\", 5020))
s.listen()
open(\"/tmp/sends\", \"w\").close()
s.accept()[0].sendall(bytes('$BYTES'))" >/dev/null 2>&1 & for i in $(seq 100); do [ ! -e /tmp/sends ] || exit 0; sleep 0.1; done; exit 1' || return
	count_from_now || return
	PYTHONPATH=lib python3 -c 'import socket, sovia, sys
s = sovia.socket(socket.AF_INET)
s.connect((socket.gethostbyname(sys.argv[1]), 5020))
print(sum(iter(lambda: len(s.recv(1 << 20)), 0)))' "$SOVIA_PEER" >"$WORK/read"
	mapped=$(counted map)
	there rm /tmp/sends
	echo "$mapped maps for $(<"$WORK/read") bytes"
	equal "$(<"$WORK/read")" $BYTES && [ "$mapped" -gt 0 ] && [ "$mapped" -lt $((BYTES / 16384 / 4)) ]
}

# Holds an echo unread until the file is gone.
start_holder() {
	python3 - "$SOVIA_PEER" "$WORK/held" <<-'EOF' >"$WORK/holder" 2>&1 &
		import fcntl, os, random, socket, struct, sys, termios, time
		sys.path.insert(0, "lib")
		import sovia
		s = sovia.socket(socket.AF_INET)
		s.connect((socket.gethostbyname(sys.argv[1]), 5004))
		data = random.Random(1).randbytes(60000)
		s.sendall(data)
		while struct.unpack("i", fcntl.ioctl(s.fileno(), termios.FIONREAD, bytes(4)))[0] < len(data):
		    time.sleep(0.1)
		open(sys.argv[2], "w").close()
		while os.path.exists(sys.argv[2]):
		    time.sleep(0.1)
		got = b""
		while len(got) < len(data):
		    got += s.recv(1 << 20)
		print("same" if got == data else "others")
	EOF
	eventually test -e "$WORK/held"
}
is_read() { rm "$WORK/held"; eventually grep . "$WORK/holder" && equal "$(<"$WORK/holder")" same; }
# Of all that has been mapped for the device since it came, or is known to DMA_API_DEBUG, nothing is when it has gone.
goes() {
	delete_device || return
	if [ -e $TRACING/events/iommu ]; then
		echo "$(counted map) mapped, $(counted unmap) unmapped"
		[ "$(counted map)" -gt 0 ] && equal "$(counted unmap)" "$(counted map)"
	else
		! grep devprofile /sys/kernel/debug/dma-api/dump
	fi
}
comes() { delete_device && counts && add_device; }
counts() { if [ -e $TRACING/events/iommu ]; then count_from_now; else [ -e /sys/kernel/debug/dma-api/dump ]; fi; }
recovers() { add_device && transfers 1000000; }
unloads() { stop_server && eventually modprobe -r sovia && there eventually modprobe -r sovia; }

limit 120
check 'a server on the peer'			start_server
check 'a first transfer'			transfers 1000000
check 'few pages are mapped'			few_are_mapped
check 'a device comes'				comes
check 'a socket holds what it has received'	start_holder
check 'the device goes, with all that is mapped'	goes
check 'it comes again'				recovers
check '... few pages are mapped'		few_are_mapped
check 'what was held is read'			is_read
check 'the module can be unloaded'		unloads
finish
