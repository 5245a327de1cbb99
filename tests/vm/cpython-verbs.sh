#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The socket tests of CPython over a lane of verbs: from this host to itself, by
# way of an RDMA device.
#
# vm: --mem 2048 --timeout 3600
set -e
modprobe rdma_rxe
ip link add roce0 type dummy
ip link set roce0 up
ip address add 10.78.0.1/24 dev roce0
ip address add fd78::1/64 nodad dev roce0
rdma link add rxe0 type rxe netdev roce0
echo Y >/sys/module/sovia/parameters/hairpin
exec tests/cpython/run.py --verbs 10.78.0.1,fd78::1 "$@"
