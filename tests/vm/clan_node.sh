#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016 # much of this is for the shell of the other node
#
# A node of shared memory that leaves it and comes back: memory that is slow, a system that sleeps, is resumed from disk or shut
# down, and a virtual machine that the server has taken for gone.
#
# vm: --pair --clan --timeout 400 --append kunit.enable=0
# lab: virtual machines share memory on one host only
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

asks() { socktool -4 ask "$SOVIA_PEER" 5004 100000; }
links_are() { equal "$(awk '$1 == "UP" { print $4 }' /proc/net/sovia/link | sort -u)" "$1"; } # PROVIDER
asks_over() { asks && links_are "$1"; }
one_more_try() { echo all >/sys/kernel/debug/sovia/break; sleep 1; asks_over clan; }
recovers() { eventually one_more_try; }
goes_on_over_verbs() { transferring "$@" && eventually links_are verbs; }
comes_back() { "$@" && recovers; }
parameter() { echo "$2" >/sys/module/sovia/parameters/"$1"; }

bind_fails() { ! bind 2>/dev/null && dmesg | grep -q 'not used, its memory is slow'; }
slow() { parameter clan_speed 100000 && unbind && bind_fails; }
fast_enough() { parameter clan_speed 10 && bind; }
rebinds() { unbind; bind; }

named_interrupt() { grep -q " $(memory_device)$" /proc/interrupts; }
no_interrupt() { ! named_interrupt; }

driver() { # CALL: by the kernel
	insmod "$HERE/../../.build/driver_call/driver_call.ko" device="$(memory_device)" call="$1" && rmmod driver_call
}
sleeps() { driver "$1" && no_interrupt; } # CALL

limit 120
check 'a server there'					start_server
check 'connections are in memory'			eventually asks_over clan
check "the interrupt has the device's name"		named_interrupt
check 'memory that is slow is not used'			goes_on_over_verbs slow
check '... and is when it is not'			comes_back fast_enough
check 'the system sleeps'				goes_on_over_verbs sleeps suspend
check '... and wakes up'				comes_back driver resume
check 'that of the peer does'				goes_on_over_verbs there sleeps suspend
check '... and wakes up'				comes_back there driver resume
check 'an image is made'				goes_on_over_verbs sleeps freeze
check '... and written'					comes_back driver thaw
check '... the system is switched off'			goes_on_over_verbs sleeps poweroff
check '... and resumed from it'				comes_back driver restore
check 'the peer is shut down'				goes_on_over_verbs there sleeps shutdown
check '... and boots'					comes_back there rebinds
finish
