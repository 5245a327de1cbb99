# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Functions shared by the lab's shell scripts.  Sourced, never run:
#
#     . "$(dirname "$0")/lib.sh"
#
# sets ROOT (the checkout) and CACHE (downloads and kernels, outside the tree
# so that a fresh clone can reuse them).
#
# Every kernel of the lab has a folder with the same layout in the cache:
#
#     release    its version, as printed by uname -r
#     vmlinuz    the image that QEMU boots
#     modroot/   lib/modules/<release>, with modules.dep
#     build      the build tree for external modules

# depmod is there, which a user's PATH lacks.
PATH=$PATH:/usr/sbin:/sbin
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SOVIA_CACHE:-/var/cache/sovia}
export ROOT CACHE

# Progress goes to stderr: the output of several scripts is read by others.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# Two checkouts, or two stages of one check, may prepare the same thing at once.
# The lock is released when the calling script exits.
lock_cache() {
	{ mkdir -p "$CACHE" && [ -w "$CACHE" ]; } 2>/dev/null || die "$CACHE cannot be written: be root, or set SOVIA_CACHE to a folder of yours"
	exec 9>"$CACHE/.lock-$1"
	flock -n 9 && return
	say "waiting for another run that prepares $1"
	flock 9
}

# The dependency of meta package $1 (optionally with /SUITE) whose name
# begins with $2.
meta_dependency() {
	local version=()
	case $1 in
	*/*) version=(-t "${1#*/}") ;;
	esac
	apt-cache "${version[@]}" show --no-all-versions "${1%/*}" |
		sed -n 's/^Depends: *//p' | tr ',' '\n' | sed 's/^ *//; s/ .*//' |
		awk -v begin="$2" 'index($0, begin) == 1 && !found { found = $0 } END { print found }'
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# apt's mirror of bookworm, which has backports and other suites as well.
mirror() {
	# shellcheck disable=SC2016 # a field name of apt, not a shell variable
	apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Codename: bookworm' 'Created-By: Packages' | sed -n 1p | grep . ||
		die "apt has no list of bookworm: apt-get update"
}

# That of its security updates, or nothing.
security_mirror() {
	# shellcheck disable=SC2016 # as above
	apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Codename: bookworm-security' 'Created-By: Packages' | sed -n 1p
}

# apt-get without questions, which waits for another one: a machine that has just booted upgrades by itself.
apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 "$@" >&2; }

# debootstrap uses apt's proxy.
use_proxy() {
	local proxy=
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[ -z "$proxy" ] || export http_proxy="$proxy"
}

# Downloads packages and unpacks them all into folder $1, without installing
# them: that would start services and change the host.
unpack_packages() {
	local target=$1 work deb
	shift
	work=$(mktemp -d)
	# apt's own sandbox user must be able to write here
	chmod 755 "$work"
	say "downloading $*"
	(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$@" >&2)
	mkdir -p "$target"
	for deb in "$work"/*.deb; do
		dpkg-deb -x "$deb" "$target"
	done
	rm -rf "$work"
}
