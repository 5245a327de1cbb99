# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the guests of a pair two machines that are connected by ssh only, for scripts on
# node-a that have sourced tap.sh from their own directory.

ROOT=$(realpath ../..)
WORK=$(mktemp -d)
SSH=/root/.ssh
HOSTKEY=/root/hostkey

# As in README.md; the module is installed already.
install_tools() { make -s -C "$ROOT/userland" install O="$ROOT/.build/userland" && PATH=/usr/local/bin:/bin sovia-run true; }

# sshd on the peer, for root with this node's key, at its address $1.
serve_ssh() {
	install -d -m 700 $SSH && rm -f $SSH/config && ssh-keygen -q -t ed25519 -N '' -f $SSH/id_ed25519 <<<y || return
	on-peer "install -d -m 700 $SSH && echo '$(cat $SSH/id_ed25519.pub)' >$SSH/authorized_keys &&
		ssh-keygen -q -t ed25519 -N '' -f $HOSTKEY &&
		$ROOT/.build/guest/usr/sbin/sshd -f /dev/null -o UsePAM=no -o ListenAddress=$1 -h $HOSTKEY" || return
	printf '%s\n' 'Host node-b' "HostName $1" "HostKeyAlias node-b" >$SSH/config
	echo "node-b $(on-peer cat $HOSTKEY.pub)" >$SSH/known_hosts
	equal "$(ssh -oBatchMode=yes node-b uname -n)" node-b
}

# From here on ssh is the only connection.
leave_lab() { ssh -F "$SOVIA_SSH/config" -O exit node-b && rm -r "$SOVIA_SSH" && ! on-peer true; }
