#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A confined program is denied the family, so that no rule of its domain is passed by: AppArmor.
#
# vm: --append "kunit.enable=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
ROOT=$(realpath ../..)
PATH=$PWD/lib:$ROOT/.build/programs/sbin:$PATH
export PYTHONPATH=$PWD/lib
WORK=$(mktemp -d)
TCP='socket.socket()' SOVIA='sovia.socket()'

load() { # PROFILE RULES
	printf '%s\n' "abi <kernel>," "profile $1 {" 'file, capability, signal, unix, ptrace,' "$2" '}' >"$WORK/$1" &&
		apparmor_parser --replace --skip-cache --base "$ROOT/.build/programs/etc/apparmor.d" -I "$ROOT/userland" "$WORK/$1"
}
policies() {
	mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
	load all 'network,' && load without $'network,\ninclude <apparmor/no-sovia>' &&
		load none '' && load stream $'network inet stream,\nnetwork inet6 stream,'
}
# What becomes of a call under a profile: ok or the errno.
within() { # PROFILE CALL
	python3 -c 'import os, sys
with open("/proc/self/attr/exec", "w") as f:
    f.write("exec " + sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])' "$1" python3 -c 'import errno, socket, sovia, sys
try:
    eval(sys.argv[1])
    print("ok")
except OSError as e:
    print(errno.errorcode[e.errno])' "$2"
}
is() { equal "$(within "$1" "$2")" "$3"; }
both_allowed() { is all "$TCP" ok && is all "$SOVIA" ok; }
denied() { is without "$TCP" ok && is without "$SOVIA" EACCES; }
not_named() { is stream "$TCP" ok && is stream "$SOVIA" EACCES; }
# A redirected program has what its policy says of TCP.
redirected() { # PROFILE WANTED [OPTION]
	equal "$(sovia-run ${3:+"$3"} bash -c "$(declare -f within); within $1 'print($TCP.getsockopt(1, 38))'" | tr '\n' ' ')" "$2 "
}
# A socket that it is given counts as inet, as TCP's do.
inherited() {
	equal "$(python3 -c 'import sovia, subprocess, sys
with sovia.socket() as s:
    print(subprocess.run(sys.argv[1:], pass_fds=[s.fileno()], env={"FD": str(s.fileno())}, stdout=subprocess.PIPE).stdout.decode())' \
		/bin/bash -c "$(declare -f within); PATH=$PATH PYTHONPATH=$PYTHONPATH within none 'socket.socket(fileno=int(__import__(\"os\").environ[\"FD\"])).listen()'")" EACCES
}

if [ ! -e /sys/module/apparmor/parameters/enabled ] || [ "$(cat /sys/module/apparmor/parameters/enabled)" != Y ]; then
	skip 'AppArmor' 'not in this kernel'
else
	check 'policies'					policies
	check 'a profile that allows all families'		both_allowed
	check 'one that denies AF_SOVIA'			denied
	check 'one that does not name it'			not_named
	check 'a redirected program has TCP then'		redirected without '6 ok'
	check '... or nothing with --only'			redirected without EACCES --only
	check '... nor where TCP is denied'			redirected none EACCES
	check '... and AF_SOVIA where that is allowed'		redirected all '254 ok'
	check 'a socket that is inherited'			inherited
fi
finish
