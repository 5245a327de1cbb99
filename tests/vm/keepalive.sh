#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Detection of a silent peer: keepalive and TCP_USER_TIMEOUT.
#
# vm: --pair --timeout 400 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# Lanes are not probed, and queue pairs retry for minutes, so that the socket's timers
# expire first.  After a cut, such a queue pair still has packets to send, which pin
# the module until the next retry, every nine seconds.
patient_lanes() {
	stop_server || return
	eventually modprobe -r sovia && modprobe sovia probe_interval=0 ack_timeout=21 || return
	eventually there 'modprobe -r sovia' || return
	there 'modprobe sovia probe_interval=0 ack_timeout=21' || return
	start_server
}

limit 120
check 'lanes that do not detect a cut' patient_lanes
check_cut 'a silent connection outlives a cut of 8 s' \
	watched alive wire_cut 8 -- TCP_NODELAY=1
check 'keepalive keeps a connection to a live peer' \
	watched alive sleep 8 -- TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=3 SO_KEEPALIVE=1
check_cut 'keepalive detects a dead peer' \
	watched ETIMEDOUT wire_cut 15 -- TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=2 SO_KEEPALIVE=1
check 'lanes set up again' patient_lanes
check_cut 'so does keepalive enabled before its times are set' \
	watched ETIMEDOUT wire_cut 15 -- SO_KEEPALIVE=1 TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=2
check 'lanes set up once more' patient_lanes
check 'a user timeout keeps a connection to a live peer' \
	watched alive sleep 5 -- 0.5 TCP_USER_TIMEOUT=2000
check_cut 'a user timeout detects a dead peer' \
	watched ETIMEDOUT wire_cut 15 -- 0.5 TCP_USER_TIMEOUT=2000
finish
