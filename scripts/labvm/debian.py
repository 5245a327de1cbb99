# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A plain Debian of scripts/debian-root, as a chroot and as guests.

Either has the folder `lab` at /mnt, starts from the same system, and forgets what it has changed.  A guest has no
network but a wire to another one: packages come from the repository that the chroot, which has one, leaves in the
folder.  The chroot also fills a compiler cache, since an emulated compiler takes half an hour for the module.
"""

import glob
import os
import subprocess

from . import guest, klog

SCRIPTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# Files of packages have the same times wherever they are installed: they need not be read again.  The language is hashed.
CCACHE = {"LANG": "C.UTF-8", "PATH": "/usr/lib/ccache:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          "CCACHE_DIR": "/mnt/ccache", "CCACHE_SLOPPINESS": "file_stat_matches,file_stat_matches_ctime", "CCACHE_NOINODECACHE": "1"}

# A person would say yes.  What is only recommended takes an emulated processor long.  dpkg gets a PATH from apt.
APT_CONF = f"""
    APT::Get::Assume-Yes "true";
    APT::Install-Recommends "false";
    DPkg::Path "{CCACHE['PATH']}";
"""

# $1 is the tree, $2 the folder, $3 the script.  What is mounted goes with the namespace.
CHROOT = """
    mount -t tmpfs none /media
    mkdir /media/upper /media/work /media/root
    mount -t overlay -o lowerdir="$1",upperdir=/media/upper,workdir=/media/work none /media/root
    mount --bind "$2" /media/root/mnt
    mount -t proc proc /media/root/proc
    cat /etc/resolv.conf >/media/root/etc/resolv.conf
    cp "$2/apt.conf" /media/root/etc/apt/apt.conf.d/90lab
    exec chroot /media/root sh -e -c "$3"
"""

# What a guest's systemd runs, see scripts/debian-root.
START = """
    echo 'deb [trusted=yes] file:/mnt/packages ./' >/etc/apt/sources.list
    cp /mnt/apt.conf /etc/apt/apt.conf.d/90lab
    export DEBIAN_FRONTEND=noninteractive HOME=/root {environment}
    apt-get -q update >/root/update.log 2>&1
    # what takes so long?
    while sleep 30; do ps -ef --forest >/mnt/processes-$(sed 's/.*lab.node=//; s/ .*//' /proc/cmdline); done &
    exec {command} >/dev/virtio-ports/output 2>&1
"""


def run(*command, **options):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **options)


class Debian:
    def __init__(self, suite, lab, command):
        """A guest runs the command after its boot."""
        folder = run(os.path.join(SCRIPTS, "debian-root"), suite, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.lab = lab
        self.tree = folder + "/tree"
        self.image = folder + "/image"
        self.kernel, = glob.glob(self.tree + "/boot/vmlinuz-*")
        self.release = os.path.basename(self.kernel).partition("-")[2]
        os.makedirs(lab + "/packages")
        with open(lab + "/apt.conf", "w") as file:
            file.write(APT_CONF)
        with open(lab + "/start", "w") as file:
            file.write(START.format(command=command, environment=" ".join(f"{key}={value}" for key, value in CCACHE.items())))

    def chroot(self, packages, script):
        """Installs packages one after another, keeps them in the repository, and runs a script of sh with ccache."""
        install = [f"apt-get -q -o Dir::Cache::archives=/mnt/packages install {package}\n" for package in packages]
        environment = {**os.environ, **CCACHE, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
        with open(os.path.join(self.lab, "chroot.log"), "a") as log:
            run("unshare", "--mount", "sh", "-e", "-c", CHROOT, "sh", self.tree, self.lab,
                "apt-get -q update\n" + "".join(install) + script, stdout=log, stderr=log, env=environment)
            index = run("dpkg-scanpackages", "--multiversion", ".", cwd=self.lab + "/packages", stdout=subprocess.PIPE, stderr=log).stdout
        with open(self.lab + "/packages/Packages", "wb") as file:
            file.write(index)

    def start(self, name, output, wire=None):
        """Boots a guest.  What its command prints goes to a file descriptor; wire is its end of one."""
        # udev loads aesni_intel for a processor with AES; it also needs an instruction that the emulated one lacks
        append = ["root=/dev/vda", "rw", "net.ifnames=0", "modprobe.blacklist=aesni_intel", f"lab.node={name}", *guest.KERNEL_OPTIONS]
        argv = ["qemu-system-x86_64", "-machine", "q35,usb=off,vmport=off,sata=off,smbus=off", *guest.accelerator(),
                "-smp", "2", "-m", "1536", "-nodefaults", "-no-user-config", "-display", "none",
                "-kernel", self.kernel, "-initrd", self.kernel.replace("vmlinuz", "initrd.img"),
                "-append", " ".join([*append, *guest.clock(False)]), "-serial", f"file:{self.console(name)}",
                "-drive", f"file={self.image},if=virtio,format=raw,snapshot=on", "-device", "virtio-serial-pci",
                "-chardev", f"file,id=output,path=/dev/fd/{output},append=on", "-device", "virtserialport,chardev=output,name=output",
                "-fsdev", f"local,id=lab,path={self.lab},security_model=none", "-device", "virtio-9p-pci,fsdev=lab,mount_tag=lab"]
        passed = [output]
        if wire:
            argv += ["-netdev", f"socket,id=wire,fd={wire.fileno()}",
                     "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:77:00:{ord(name[-1]):02x}"]
            passed.append(wire.fileno())
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=passed, env={**os.environ, "TMPDIR": self.lab},
                                preexec_fn=guest.die_with_parent)

    def console(self, name):
        return os.path.join(self.lab, "console-" + name)

    def kernel_reports(self, name):
        """Prints what the guest's kernel reported, and returns whether it did."""
        with open(self.console(name), errors="replace") as file:
            reports = klog.reports(file.read())
        for line in reports:
            print(f"{name}! {line}", flush=True)
        return bool(reports)
