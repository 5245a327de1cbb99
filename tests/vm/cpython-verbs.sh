#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The socket tests of CPython over a verbs lane: from this host to itself, through
# an RDMA device.
#
# vm: --mem 2048 --timeout 3600
set -e
cd "$(dirname "$0")/../.."
# shellcheck source=lib/roce.sh source-path=SCRIPTDIR
. tests/vm/lib/roce.sh
roce_device 10.78.0.1/24 fd78::1/64
exec tests/cpython/run.py --verbs 10.78.0.1,fd78::1 "$@"
