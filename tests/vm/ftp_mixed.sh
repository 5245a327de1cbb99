#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The same as ftp.sh where only the client, or only the server, uses AF_SOVIA: they reach each other over TCP.
#
# vm: --pair --timeout 400 --append kunit.enable=0
# lab: it puts files into /usr and /etc of the other node
exec scripts/guest/ftp.py mixed
