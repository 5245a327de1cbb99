#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A link goes on over another card than before, one that takes fewer pieces in a message or has larger buffers, at one end
# and then at both, and back.  Nothing is lost, and no memory is taken that has not been promised.
#
# vm: --pair --profile mlx5 --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
# lab: the cards are tests/devprofile's
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

count() { sovia stat value "$1"; }

# How many devices have had a profile.
applied() { cat /sys/module/devprofile/parameters/applied; }
# The device goes, and another one is there.
becomes() { # PROFILE
	local before
	before=$(applied)
	delete_rdma && echo -n "$1" >/sys/module/devprofile/parameters/profile && add_rdma && [ "$(applied)" -gt "$before" ]
}
# Messages that were made for the device before are under way.
moves_to() { # PROFILE
	local before
	before=$(count link_recover)
	becomes "$1" && eventually recovered "$before"
}
recovered() { [ "$(count link_recover)" -gt "$1" ]; }
there_moves_to() { there moves_to "$1"; }

limit 120
check 'a server on the peer'			start_server
check 'from mlx5 to qedr'			transferring moves_to qedr
check '... at the other end'			transferring there_moves_to qedr
check 'from qedr to bnxt'				transferring moves_to bnxt
check 'back to mlx5'				transferring moves_to mlx5
check '... at the other end, too'		transferring there_moves_to mlx5
check 'nothing was refused'			equal "$(count bad_hello)" 0
check 'the module can be unloaded'		eval 'stop_server && eventually modprobe -r sovia'
finish
