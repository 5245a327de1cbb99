#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Calls of any user that others would feel: a poll() that cannot be killed (tests/fuzz/poll_owned.c), files that are not
# released (linger_worker.c), memory of another socket (late_rcvbuf.c).
#
# vm: --mem 1024 --timeout 400 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh

FUZZ=$(realpath ../..)/.build/fuzz

build() { make -s -C ../fuzz calls; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all -- timeout 100 "$FUZZ/$1" "${@:2}"; }
no_warning() { ! dmesg | grep -E 'WARNING: |BUG: |Oops'; }

limit 120
check 'the programs are built'					build
sysctl -qw vm.unprivileged_userfaultfd=1
check 'poll() of a listener that another thread has'		nobody poll_owned poll
check '... by an epoll within another one'			nobody poll_owned epoll
check 'the last reference is a worker'\''s, and it lingers'	nobody linger_worker
echo "# $output"
check 'SO_RCVBUF of a socket that has become TCP'\''s'		nobody late_rcvbuf
echo "# $output"
check 'the kernel does not complain'				no_warning
check 'the module unloads'					eventually modprobe -r sovia
finish
