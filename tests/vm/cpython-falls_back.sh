#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The socket tests of CPython with AF_SOVIA sockets whose connections fall back to TCP at the will of the listener, as to a node without the module.
#
# vm: --mem 2048 --timeout 1800
exec tests/cpython/run.py --tcp in "$@"
