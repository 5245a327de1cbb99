#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Netfilter and IPsec are asked for each connection, here and on the other node: net.sovia.netfilter.
#
# vm: --pair --timeout 900 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

serve() { setsid dry_syn serve "$WORK/ready" >/dev/null 2>&1 & eventually test -e "$WORK/ready"; }

check 'servers' serve
check 'servers on the other node' there "$(declare -f serve); serve"
check 'it is off at first' equal "$(sysctl -n net.sovia.netfilter)" 0
each 'within a node' dry_syn here
each 'between nodes' dry_syn pair
finish
