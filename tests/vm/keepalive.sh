#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How a program learns that its peer is silent: keepalive and TCP_USER_TIMEOUT.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

# Lanes are not probed, and queue pairs take minutes to give up, so that it is the
# socket that notices.  What such a queue pair still has to send, after a cut, pins
# the module until it is tried again, every nine seconds.
patient_lanes() {
	stop_server || return
	eventually modprobe -r sovia && modprobe sovia probe_interval=0 ack_timeout=21 || return
	eventually there 'modprobe -r sovia' || return
	there 'modprobe sovia probe_interval=0 ack_timeout=21' || return
	start_server
}

limit 120
check 'lanes that notice nothing' patient_lanes
check_cut 'a silent connection outlives a cut of 8 s' \
	watched alive wire_cut 8 -- TCP_NODELAY=1
check 'keepalive leaves a peer alone that is there' \
	watched alive sleep 8 -- TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=3 SO_KEEPALIVE=1
check_cut 'keepalive notices a peer that is not' \
	watched ETIMEDOUT wire_cut 15 -- TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=2 SO_KEEPALIVE=1
check 'lanes made anew' patient_lanes
check_cut 'so does keepalive that was on before its times were set' \
	watched ETIMEDOUT wire_cut 15 -- SO_KEEPALIVE=1 TCP_KEEPIDLE=1 TCP_KEEPINTVL=1 TCP_KEEPCNT=2
check 'lanes made anew again' patient_lanes
check 'a user timeout leaves a peer alone that answers' \
	watched alive sleep 5 -- 0.5 TCP_USER_TIMEOUT=2000
check_cut 'a user timeout notices one that does not' \
	watched ETIMEDOUT wire_cut 15 -- 0.5 TCP_USER_TIMEOUT=2000
finish
