#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The memory that both hosts share goes during a transfer, and its link goes on over a card that takes few pieces in a
# message.
#
# vm: --pair --clan --device siw --profile x722 --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
# lab: the card is tests/devprofile's
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

goes_over() { grep -q "^UP .* $1" /proc/net/sovia/link || { cat /proc/net/sovia/link; return 1; }; }
memory_goes() { goes_over clan && unbind && eventually goes_over verbs; }

limit 120
short_connects
check 'a server on the peer'		start_server
check 'from memory to X722'		transferring memory_goes
check 'nothing was refused'		equal "$(sovia stat value bad_hello)" 0
check 'the module can be unloaded'	eval 'stop_server && eventually modprobe -r sovia'
finish
