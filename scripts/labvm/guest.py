# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One QEMU guest: its command line, its files, and its two virtio-serial
ports, `output` (what the command prints) and `control` (see guest/main), and
QEMU's monitor."""

import ctypes
import os
import re
import shlex
import signal
import socket
import subprocess

from . import tsc

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

# Without these two features the emulated processor's memcpy and CRC are
# several times faster than with them.
EMULATED_CPU = "max,-erms,-pclmulqdq"

# On a busy host guests take longer to set a link up than connect() waits before it uses TCP: tests
# are to see AF_SOVIA's connections nevertheless.
KERNEL_OPTIONS = """
    console=ttyS0 quiet loglevel=4 panic=-1 reboot=t printk.devkmsg=on log_buf_len=8M
    mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on print-fatal-signals=1
    watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60
    sovia.fallback_wait=20000
""".split()


def accelerator(icount=False):
    """KVM only if the CPU has the feature: on some hosts with /dev/kvm but
    without it guests hang."""
    if icount:      # each instruction takes a nanosecond, and idle time is skipped
        return ["-accel", "tcg,thread=single,tb-size=256", "-cpu", EMULATED_CPU, "-icount", "shift=0,sleep=off",
                "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]
    with open("/proc/cpuinfo") as file:
        able = re.search(r"^flags\b.*\b(vmx|svm)\b", file.read(), re.MULTILINE)
    if able and os.access("/dev/kvm", os.R_OK | os.W_OK):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", EMULATED_CPU]


def host_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else f"{os.cpu_count()} processors"


def emulation(icount=False):
    """What guests run on, for those who read what was measured."""
    shown = subprocess.run(["qemu-system-x86_64", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {"host": host_name(), "qemu": shown.splitlines()[0], "accelerator": accelerator(icount)[1].split(",")[0]}


def clock(icount):
    khz = None if icount else tsc.khz()
    return [f"tsc_early_khz={khz}"] if khz else []


def die_with_parent():
    """A guest must not outlive scripts/vm, however that ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Guest:
    def __init__(self, name, folder, config):
        self.name = name
        self.folder = folder
        self.config = config
        self.booted = False         # it has reported so
        self.ready = False
        self.started = False        # its command, likewise
        self.status = None          # of its command
        self.process = None
        self.pending = b""          # an incomplete line of the control port
        os.makedirs(folder)
        self.console = os.path.join(folder, "console")

    def write_files(self, settings, command):
        with open(os.path.join(self.folder, "settings"), "w") as file:
            for name, value in settings.items():
                file.write(f"{name}={shlex.quote(str(value))}\n")
        with open(os.path.join(self.folder, "command"), "w") as file:
            file.write(command + "\n")

    def start(self, number, wire=None, peer=None):
        """wire and peer are this guest's ends of the lines to the other one."""
        config = self.config
        self.output, output = socket.socketpair()
        self.control, control = socket.socketpair()
        self.monitor, monitor = socket.socketpair()
        lines = {"output": output, "control": control}
        if peer:
            lines["peer"] = peer
        # the leak detector makes a debug kernel half as fast
        leaks = [] if config.leaks else ["kmemleak=off"]
        append = KERNEL_OPTIONS + [f"guest.root={config.root}", f"guest.run={self.folder}",
                                   *leaks, *clock(config.icount), config.append]
        argv = ["qemu-system-x86_64", "-machine", "q35,usb=off,vmport=off,sata=off,smbus=off", *accelerator(config.icount),
                # an emulator of one processor leaves out fences, which others see
                "-smp", f"{config.smp},maxcpus={max(2, config.smp)}" if config.clan else str(config.smp), "-m", str(config.mem),
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", config.kernel, "-initrd", config.initramfs, "-append", " ".join(append),
                "-serial", f"file:{self.console}", "-device", "virtio-serial-pci"]
        for name, end in lines.items():
            argv += ["-chardev", f"socket,id={name},fd={end.fileno()},server=off",
                     "-device", f"virtserialport,chardev={name},name={name}"]
        for tag, path, extra in (("root", "/", ",readonly=on,multidevs=remap"),
                                 ("modules", config.modules, ",readonly=on"),
                                 ("checkout", config.root, ",multidevs=remap")):
            argv += ["-fsdev", f"local,id={tag},path={path},security_model=none{extra}",
                     "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        argv += ["-chardev", f"socket,id=monitor,fd={monitor.fileno()},server=off",
                 "-mon", "chardev=monitor,mode=readline"]
        passed = [end.fileno() for end in (*lines.values(), monitor)]
        if wire:
            argv += ["-netdev", f"socket,id=wire,fd={wire.fileno()}",
                     "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:77:00:{number:02x}"]
            passed.append(wire.fileno())
        for i, path in enumerate(config.clan):
            argv += ["-chardev", f"socket,id=clan{i},path={path}", "-device", f"ivshmem-doorbell,chardev=clan{i},vectors=1"]
        argv += shlex.split(config.qemu)
        with open(os.path.join(self.folder, "qemu"), "w") as log:
            log.write(shlex.join(argv) + "\n")
            log.flush()
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=passed, start_new_session=True,
                                            preexec_fn=die_with_parent)
        self.ended = os.pidfd_open(self.process.pid)
        for end in (*lines.values(), monitor, *([wire] if wire else [])):
            end.close()

    def order(self, word):
        try:
            self.control.sendall(word.encode() + b"\n")
        except OSError:
            pass    # it has ended, which the caller notices

    def ask_monitor(self, command):
        try:
            self.monitor.sendall(command.encode() + b"\n")
        except OSError:
            pass    # as above

    def plug(self, state):
        """Plugs ("on") or unplugs ("off") the wire; unplugged, it has no carrier."""
        self.ask_monitor(f"set_link wire {state}")

    def freeze(self, frozen):
        """Stops the guest's processors, or lets them go on."""
        self.ask_monitor("stop" if frozen else "cont")

    def said(self, data):
        """Complete lines of the control port."""
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def text(self, name):
        try:
            with open(os.path.join(self.folder, name), errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""
