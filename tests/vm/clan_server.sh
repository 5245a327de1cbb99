#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sovia-clan-server: what QEMU gets of it, and peers that do not behave.
#
# vm: --append kunit.enable=0
cd "$(dirname "$0")" || exit 1
exec lib/clan_server
