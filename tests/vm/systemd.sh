#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Units, by a systemd of the guest's: what sovia-clan@ keeps when it is started anew, and sovia-run where the family, or an
# address, is forbidden.
#
# vm: --timeout 600 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
WORK=$(mktemp -d)
BUILT=$(realpath ../../.build/userland)
PATH=$PWD/lib:$PATH

prepare() {
	cp "$BUILT"/systemd/sovia-clan@.* "$BUILT/bin/sovia-clan-server" "$WORK" && sed -i 's,/usr/local/bin,/run/lab,' "$WORK"/*.service &&
		mkdir "$WORK/sovia-clan@.service.d" "$WORK/sovia-clan@group.socket.d" &&
		printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' 'StandardOutput=append:/run/log-%i' 'StandardError=inherit' >"$WORK/sovia-clan@.service.d/log.conf" &&
		printf '%s\n' '[Socket]' 'SocketGroup=daemon' >"$WORK/sovia-clan@group.socket.d/group.conf" &&
		run_unit tcp '' && run_unit only --only &&
		connect_unit open && connect_unit allowed IPAddressDeny=any IPAddressAllow=127.0.0.1 && connect_unit denied IPAddressDeny=any
}

# A program under sovia-run, whose service may open TCP's sockets alone.
run_unit() { # NAME OPTION
	cat >"$WORK/$1.service" <<-END
		[Service]
		Type=oneshot
		Environment=PATH=$PATH
		RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
		StandardOutput=file:/run/$1
		StandardError=inherit
		ExecStart=$BUILT/bin/sovia-run $2 python3 -c 'import socket; print(socket.socket().getsockopt(1, 38))'
	END
}

# A program that connects to a server outside its service.
connect_unit() { # NAME SETTING...
	local name=$1
	shift
	{
		cat <<-END
			[Service]
			Type=oneshot
			Environment=PATH=$PATH
			StandardOutput=file:/run/$name
			StandardError=inherit
			ExecStart=$BUILT/bin/sovia-run python3 -Ic 'import socket; s = socket.socket(); s.settimeout(5); print(s.connect_ex(("127.0.0.1", 5099)), s.getsockopt(1, 38))'
		END
		[ $# = 0 ] || printf '%s\n' "$@"
	} >"$WORK/$name.service"
}

check 'units' prepare
each 'sovia-clan@' in_systemd "$WORK" units clan
each 'sovia-run' in_systemd "$WORK" units run
finish
