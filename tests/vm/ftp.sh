#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# inetd, an FTP server and an FTP client, none of them modified, move a file in
# both directions and modes; the demonstration does the same with larger ones.
#
# vm: --pair --timeout 300
# lab: it puts files into /usr and /etc of the other node
exec scripts/guest/ftp.py test
