#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Commands of Documentation/roce.rst work, those that need no card.
#
# vm: --pair --append kunit.enable=0
# lab: its names are not those of another machine's
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

PAGE=$HERE/../../Documentation/roce.rst

mapfile -t commands < <(sed -n 's/^    # //p' "$PAGE" | sed "s/mlx5_0/$SOVIA_RDMA/g; s/eth2/$SOVIA_NETDEV/g; s/ADDRESS/$SOVIA_PEER/g")
check 'there are commands'	[ ${#commands[@]} -ge 8 ]
for command in "${commands[@]}"; do
	check "$command"	eval "$command"
done
finish
