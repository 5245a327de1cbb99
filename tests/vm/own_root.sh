#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Any user is root in namespaces of one's own.  What such a root does with sockets (tests/fuzz/own_root.c) is to the host
# as it is with TCP: nothing hangs, nothing is left, the memory has its limit, and what is to be encrypted is not sent in
# the clear.
#
# vm: --mem 1024 --timeout 400 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

FUZZ=$(realpath ../..)/.build/fuzz

build() { make -s -C ../fuzz calls; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all -- "$@"; }
own_root() { nobody timeout 120 "$FUZZ/own_root" "$@"; }

# Networking configuration: RTNL is free.
configures() { timeout 10 ip link set lo up; }
no_warning() { ! dmesg | grep -E 'WARNING: |BUG: '; }

check 'the programs are built'				build
for what in policies clear floor netfilter; do
	check "as root of one's own namespace: $what, TCP"	own_root --tcp $what
	echo "# ${output//$'\n'/, }"
	check "... and AF_SOVIA"				own_root $what
	echo "# ${output//$'\n'/, }"
	check "... networks can be configured"			configures
done
check 'the kernel does not complain'			no_warning
finish
