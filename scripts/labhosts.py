# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""This machine and another one that ssh reaches, as tests and measurements see the guests of a pair."""

import os
import shlex
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# All calls share one connection.  The user's configuration of ssh selects host name and network.
CONFIG = """
Host *
	User root
	BatchMode yes
	LogLevel ERROR
	ControlMaster auto
	ControlPersist 60
	ControlPath {folder}/master
Include ~/.ssh/config
Include /etc/ssh/ssh_config
"""

# Prints the variables of tests/vm/lib/pair.sh for the node with the name $1.
DESCRIBE = r"""
fail() { echo "$(uname -n): $*" >&2; exit 1; }
address=$(getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }')
netdev=$(ip -o address show to "${address:-none}" 2>/dev/null | awk 'NR == 1 { print $2 }')
[ -n "$netdev" ] || fail "no interface has the address of $1, ${address:-which is unknown}"
rdma=$(rdma link show | sed -n "s,^link \([^/]*\)/.* netdev $netdev\( .*\|\)\$,\1,p" | head -n 1)
[ -n "$rdma" ] || fail "no RDMA device on $netdev"
modprobe sovia && sovia-run true || fail "AF_SOVIA is not installed"
kind=hw
[ -e "/sys/class/infiniband/$rdma/device" ] || case $(cat "/sys/class/infiniband/$rdma/node_type") in
*RNIC) kind=siw ;;
*) kind=rxe ;;
esac
set -- $(ip -o address show to "$(echo "${SSH_CONNECTION:-}" | awk '{ print $3 }')" 2>/dev/null)
echo "SOVIA_NETDEV=$netdev SOVIA_RDMA=$rdma SOVIA_DEVICE=$kind SSH_NETDEV=${2:-}"
"""


class Unusable(Exception):
    """A machine lacks something; str() tells which machine, and what."""


def on_peer(*words, **options):
    return subprocess.run([os.path.join(ROOT, "scripts/guest/bin/on-peer"), *words], stdout=subprocess.PIPE, text=True, **options)


def described(done):
    if done.returncode:
        raise Unusable((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    return dict(word.split("=", 1) for word in done.stdout.split())


def connect(folder, here, there):
    """Sets the environment for on-peer and the tests: @here and @there are the machines' names, @folder is new and empty."""
    with open(os.path.join(folder, "config"), "w") as file:
        file.write(CONFIG.format(folder=folder))
    os.mkfifo(os.path.join(folder, "never"))
    with open(os.path.join(folder, "environment"), "w") as file:
        file.write(f"export SOVIA_TESTS={folder} SOVIA_NODE={shlex.quote(there)} SOVIA_PEER={shlex.quote(here)}")
        # the rest is found out through on-peer
        file.flush()
        os.environ.update(SOVIA_SSH=folder, SOVIA_TESTS=folder, SOVIA_NODE=here, SOVIA_PEER=there)
        ours = described(subprocess.run(["bash", "-c", DESCRIBE, "describe", here], capture_output=True, text=True))
        theirs = described(on_peer("bash", "-c", DESCRIBE, "describe", there, stderr=subprocess.PIPE))
        if theirs.pop("SSH_NETDEV") == theirs["SOVIA_NETDEV"]:
            ours["SOVIA_CUT"] = "ssh needs the network under test"
        elif "hw" in (ours["SOVIA_DEVICE"], theirs["SOVIA_DEVICE"]):
            ours["SOVIA_CUT"] = "the device is hardware, which tc does not reach"
        else:
            ours["SOVIA_CUT"] = "yes"
        file.writelines(f" {name}={shlex.quote(value)}" for name, value in theirs.items())
    os.environ.update(ours)


def ssh(folder, *words, **options):
    return subprocess.run(["ssh", "-F", f"{folder}/config", *words], **options)


def disconnect(folder):
    """Ends what tests have left running on both machines, and removes their files; the connection ends."""
    if not os.path.exists(f"{folder}/master"):
        return
    clean = (f"for file in $(grep -lsz '^SOVIA_TESTS={folder}$' /proc/[0-9]*/environ); do "
             f"file=${{file%/environ}}; kill -KILL ${{file#/proc/}}; done; rm -rf /tmp/sovia-programs")
    ssh(folder, os.environ["SOVIA_PEER"], f"{clean} {folder}")
    ssh(folder, "-O", "exit", os.environ["SOVIA_PEER"], stderr=subprocess.DEVNULL)
    subprocess.run(["sh", "-c", clean], env={"PATH": os.environ["PATH"]})


def copy(paths, folder, start=ROOT):
    """Puts files and folders, named relative to @start, into @folder there; without the fuzzers' inputs."""
    tar = subprocess.Popen(["tar", "-c", "-C", start, "--exclude=corpus", *paths], stdout=subprocess.PIPE)
    # not on-peer, whose commands have no standard input
    done = ssh(os.environ["SOVIA_SSH"], os.environ["SOVIA_PEER"], f"mkdir -p {folder} && tar -x -C {folder}", stdin=tar.stdout)
    if tar.wait() or done.returncode:
        raise Unusable(f"{os.environ['SOVIA_PEER']}: files cannot be copied there")
