#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The command sovia: what it shows is what programs did and what /proc has; what it changes; who may.
#
# vm: --pair --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

check 'an echo server' start_server
for part in sockets tcp links devices stats events settings rights words batches churn diag; do
	each "$part" tool $part
done
finish
