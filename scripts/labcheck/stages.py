# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which stages there are, what each needs, and which tier runs it."""

import fnmatch
import glob
import os
import re
import shlex
import sys

from .results import ROOT, Build, Kunit, Preparation, Tap

# The tiers, as patterns of stages' names.  A stage in none of them is in the second, so that
# a new test runs for every commit until it turns out to take too long.
QUICK = ("lint", "klog", "lab-check", "build-stock", "build-6.12", "build-newest", "build-userland", "completion",
         "e2e-quick-loop", "e2e-quick-pair")
LINT = ("lint", "build-debug", "build-arm64")
# In the second tier e2e-loop has its cases.
ONLY_QUICK = ("e2e-quick-loop",)
# Of the second tier, minutes of processor time each, of parts that seldom change: where a run has to end by a time
# (record.HEAVY_WITHIN), a slow machine leaves them out.
HEAVY = ("vm-anchors", "vm-beside", "vm-boot", "vm-clan", "vm-clan_node", "vm-hw-x722", "vm-own_root", "vm-parked", "vm-rdma", "vm-recovery",
         "vm-rendezvous")
NIGHTLY = (
    # each case on each kernel: the tier before has all of them on one, and the quick ones on others
    "e2e-loop-*", "e2e-pair", "e2e-pair-*", "e2e-quick-pair-debug*", "e2e-quick-pair-siw", "build-debug-6.12",
    # models of designs, and whether they find faults
    "models", "models-mutants",
    # programs of all kinds
    "vm-cpython-*", "vm-app_misc", "vm-app_epoll", "vm-app_transfer", "vm-bench_ssh", "vm-app_postgres",
    # lack of resources, and network faults
    "vm-limits", "vm-bounds*", "vm-cgroup", "vm-cgroup_recv_v1", "vm-memory_pressure*", "vm-e2e_failslab*", "vm-alloc_failures", "vm-netem", "vm-fault",
    "vm-dead_clients", "vm-many", "vm-many_limit", "vm-many_loop", "vm-many_busy",
    # as another test in the tier before, for the other combinations
    "vm-ftp_mixed", "vm-mixed",
    # minutes each, of parts that seldom change
    "vm-keepalive", "vm-keys", "vm-containers", "vm-containers_lane", "vm-differ", "vm-dissector", "vm-dissector-siw", "vm-selftests",
    "vm-parameters", "vm-impostor", "vm-siege", "vm-storm", "vm-trial*", "vm-superservers",
    # load, long runs
    "vm-syscall_fuzz", "vm-beside_long*", "vm-netlink_fuzz", "vm-rogue_peer", "vm-soak*", "vm-hosts*", "vm-attackers",
    # two Debian systems, made on first use
    "deb-install-*", "first-use-*", "fresh-*",
    # as another kernel or way to open a socket in the tier before
    "vm-cgroup_run-newest", "vm-cgroup_recv-*", "vm-module-debug", "e2e-quick-loop-protocol", "e2e-quick-loop-newest", "e2e-quick-lane",
    # as one that looks like another card in the tier before
    "vm-hw", "vm-hw-mlx4", "vm-hw-e810", "vm-hw-bnxt", "vm-hw-hns", "vm-hw-qedr", "vm-hw-cx4-vf", "vm-hw-chelsio", "vm-hw-erdma",
    "vm-hw-mana72", "vm-hw-usnic", "vm-hw-representor", "vm-hw-*-6.12", "vm-hw-*-newest",
    "vm-fatal-*", "vm-failover_clan", "vm-recovery-bnxt", "vm-recovery-qedr", "vm-recovery-chelsio", "vm-lanes-qedr", "vm-drain-*",
    "vm-iwpmd", "vm-bond", "vm-mapped*", "vm-parked-*",
    # of a page, and of parameters
    "vm-doc", "vm-tos", "vm-verbs_netns", "vm-direct*",
    # as a stage without a guest, with the names that a kernel has
    "vm-completion",
    # of a switch that is off by default
    "vm-dry_syn",
    # bpftrace compiles for half a minute and more
    "vm-trace_scripts", "vm-trace_flow", "vm-btf",
    # covered by another test in the tier before, or tests of benchmarks
    "e2e-quick-loop-6.12", "e2e-quick-pair-6.12", "e2e-quick-loop-fallback", "vm-clan_memories", "vm-rdma-siw", "vm-lanes-siw", "vm-recovery-siw", "vm-impostor-siw", "vm-bench_smoke", "vm-bench_tools", "vm-bench_smc",
)

# Debian's own kernels; how much longer others may take.
STOCK = ("stock", "6.12", "newest")
BUILT = ("debug", "debug-6.12", "kcsan")
DEBUG_SLOW = 4
# So many stages share the tests of one that no slice of nightly ones has room for.
PARTS = {"e2e-quick-pair-debug": 2, "e2e-pair-6.12": 2, "e2e-pair-newest": 2,
         "e2e-loop-debug": 3, "e2e-loop-debug-6.12": 3, "e2e-pair-debug": 6,
         "vm-cpython": 2, "vm-cpython-falls_back": 2, "vm-cpython-only_tcp": 2, "vm-cpython-verbs": 3, "vm-beside_long": 3, "vm-hosts": 2, "vm-e2e_failslab": 4,
         "vm-bounds": 3}
# Nightly stages that no slice has room for all the same: their kernel is compiled for them alone, or the module is within
# an emulated machine.
BY_HAND = ("*-debug-6.12*", "deb-install-*", "first-use-*")
# MiB: with less, a debug kernel has hardly any for the test.
DEBUG_MEM = 512

# All that the compiler says.  kernel-doc is lint's: it need not read each file for each kernel.
STRICT = ("W=1", "cmd_checkdoc=")
# Of the tools, in the lab alone: a newer compiler may warn of more.
STRICT_TOOLS = "WERROR=-Werror"

# Scripts of tests/vm that run over either kind of RDMA, and on other kernels, too.
OVER_IWARP = ("rdma", "lanes", "recovery", "impostor", "dissector")
ON_OTHERS = {"autoload": STOCK[1:], "cgroup_run": STOCK[1:], "cgroup_recv": STOCK[1:], "module": ("debug",), "any_user": STOCK[2:],
             "mapped": STOCK[2:], "direct": ("debug",)}

# Scripts of tests/vm that run with RDMA devices that look like others (tests/devprofile), by kernel.
ON_PROFILES = {
    "hw": {STOCK[0]: ("mlx5", "mlx4", "e810", "bnxt", "hns", "qedr", "cx4-vf", "x722", "chelsio",
                      "erdma", "mana612", "mana72", "usnic", "representor"),
           STOCK[1]: ("mlx5", "erdma"), STOCK[2]: ("mlx5", "erdma")},
    "fatal": {STOCK[0]: ("bnxt", "chelsio")},
    "recovery": {STOCK[0]: ("bnxt", "qedr", "chelsio")},
    "lanes": {STOCK[0]: ("qedr",)},
    "drain": {STOCK[0]: ("bnxt", "chelsio")},
    "trial": {STOCK[0]: ("bnxt",)},
    "memory_pressure": {STOCK[0]: ("qedr",)},
}
IWARP_PROFILES = ("x722", "chelsio")
# Scripts of tests/vm where the memory of such devices is mapped, as a card's is: by what, and on which kernel.
ON_DMA = {"soak": (("swiotlb", BUILT[0]), ("iommu", STOCK[1])), "parked": (("swiotlb", STOCK[0]), ("iommu", STOCK[1])),
          "memory_pressure": (("iommu", STOCK[1]), ("plain", BUILT[1])), "drain": (("plain", BUILT[1]),), "mapped": (("plain", BUILT[1]),)}


def is_guest(command):
    return command[:2] == ["scripts/vm", "run"]


def on_kernel(command, kernel, everything):
    """The same guests with another kernel.  On a debug kernel everything takes longer, and KUnit has its own stage."""
    if not is_guest(command) or "--no-module" in command:
        return command
    options, rest = command[2:command.index("--")], command[command.index("--"):]
    given = dict(zip(options, options[1:]))
    extra = ["--kernel", kernel]
    if kernel not in STOCK:
        extra += ["--timeout", str(DEBUG_SLOW * int(given.get("--timeout", 300)))]
        if "--mem" in given:
            extra += ["--mem", str(max(DEBUG_MEM, int(given["--mem"])))]
        if "--append" not in given:
            extra += ["--append", "kunit.enable=0"]
    if kernel.startswith("debug") and everything:
        extra.append("--leaks")
    # the last option counts
    return ["scripts/vm", "run", *options, *extra, *rest]


def on_device(command, device):
    """The same pair over another kind of RDMA."""
    if not is_guest(command) or "--pair" not in command:
        return command
    at = command.index("--")
    return [*command[:at], "--device", device, *command[at:]]


def over_clan(command):
    """The same guests with shared memory; those of --wire have verbs as well."""
    if not is_guest(command):
        return command
    options, rest = command[2:command.index("--")], command[command.index("--"):]
    if "--pair" in options:
        return ["scripts/vm", "run", *options, "--clan", "--device", "none", *rest]
    given = dict(zip(options, options[1:]))
    return ["scripts/vm", "run", *options, "--append", f"{given.get('--append', '')} sovia.clan_soft=1".lstrip(), *rest]


def make(folder, *targets, **options):
    """Into the folder of .build that has the same name."""
    return ["make", "-s", *(["-B"] if options.get("clean") else []), "-C", folder, f"O={ROOT}/.build/{os.path.basename(folder)}", *targets]


def build_module(kernel, *options):
    return ["scripts/build-module", "--kernel", kernel, *options]


# What stages need.  It is made by these commands, in no time if it is there, unless a stage of the same name is chosen
# as well.
PREPARATIONS = {
    "packages-kernels": ["scripts/install-deps", "kernels"],
    "packages": ["scripts/install-deps", "packages"],
    "servers": ["scripts/fetch-servers"],
    **{f"kernel-{kernel}": ["scripts/kernel-dir", kernel] for kernel in (*STOCK, *BUILT, "arm64")},
    "kernel-newest": ["scripts/fetch-kernel", "newest", "--update"],
    **{f"build-{kernel}": build_module(kernel, "--siw") for kernel in (*STOCK, *BUILT)},
    "build-raised": build_module(STOCK[0], "--raised"),
    "build-userland": make("userland", STRICT_TOOLS),
    "build-rogue_peer": make("tests/rogue_peer"),
    "build-driver_call": make("tests/driver_call"),
    "build-differ": make("tests/differ"),
    "build-selftests": make("tests/selftests"),
    "build-calls": ["make", "-s", "-C", "tests/fuzz", f"O={ROOT}/.build/fuzz", "calls"],
}
# What a script of tests/vm has in its text, its own or that of a library that it reads, and what it needs therefore.
NEEDS_OF_TEXT = {"/rogue_peer": "build-rogue_peer", "/driver_call": "build-driver_call", "stock-raised": "build-raised", "/differ": "build-differ",
                 "/selftests": "build-selftests", "fuzz/calls": "build-calls", "fuzz/beside": "build-calls",
                 "fuzz/slow_pages": "build-calls", "/own_root": "build-calls", "/fuzz calls": "build-calls",
                 "--hosts": "build-rogue_peer"}


def needs(name, command):
    """Names of stages and preparations that a stage or a preparation needs."""
    found = []
    if name != "packages-kernels":
        found.append("packages-kernels" if name in EARLY or "scripts/build-module" in command else "packages")
    if name.startswith("build-") and "scripts/build-module" in command:
        found.append(f"kernel-{command[command.index('--kernel') + 1]}")
    if is_guest(command):
        options = command[2:command.index("--")]
        kernel = ([STOCK[0]] + [value for option, value in zip(options, options[1:]) if option == "--kernel"])[-1]
        found += [f"{'kernel' if '--no-module' in options else 'build'}-{kernel}", "build-userland", "servers"]
        script = re.fullmatch(r"bash (tests/vm/\S+\.sh)( --part \S+)?", command[-1])
        text = read_script(os.path.join(ROOT, script[1])) if script else ""
        found += [need for part, need in NEEDS_OF_TEXT.items() if part in text]
    return found + NEEDS.get(name, [])


# They do not wait for the packages of everything else; the other kernels do, since apt's sources are changed for them.
EARLY = ("packages", "build-userland", "kernel-stock", *(f"kernel-{kernel}" for kernel in BUILT))
# Of stages without guests.
NEEDS = {"completion": ["build-userland"], "deb": ["build-stock"], "kernel-arm64": ["kernel-stock"]}


def read_script(path):
    """Its text, and that of the libraries that it reads."""
    with open(path) as file:
        text = file.read()
    for name in re.findall(r"^\. (lib/\S+)$", text, re.MULTILINE):
        with open(os.path.join(ROOT, "tests/vm", name)) as file:
            text += file.read()
    return text


def guest(arguments, command):
    return ["scripts/vm", "run", *arguments, "--", command]


def guest_options(script):
    """Options of scripts/vm in the head of a script of tests/vm."""
    with open(script) as file:
        found = re.search(r"^# vm:(.*)$", file.read(), re.MULTILINE)
    return shlex.split(found[1]) if found else []


def parts(name):
    """Suffixes of the stages that share these tests, and the options of each."""
    count = PARTS.get(name, 1)
    return [(f"-{number}", f" --part {number}/{count}") for number in range(1, count + 1)] if count > 1 else [("", "")]


def e2e(name, mode, *arguments, slow=1, family="both", transport="sovia", only=None):
    # KUnit has its own stage
    if slow > 1:
        arguments += ("--append", "kunit.enable=0")
    command = f"tests/e2e/run.py --transport {transport} --mode {mode} --slow {slow} --family {family}"
    if only:
        command += f" -k '{only}'"
    if mode == "pair":
        arguments += ("--pair",)
    return [Tap(name + suffix, guest(["--timeout", str(1800 * min(slow, 2)), *arguments], command + option)) for suffix, option in parts(name)]


def e2e_quick(name, mode, *arguments, **options):
    stages = e2e(name, mode, *arguments, **options)
    for stage in stages:
        stage.command[-1] += " --quick"
    return stages


def all_stages(everything=False):
    """Debug kernels look for leaks at night only."""
    def leaks(name):
        return ["--leaks"] if everything or named(name, NIGHTLY) else []

    stages = [Tap("lint", ["scripts/lint"]), Tap("klog", ["tests/lab/klog.py"]), Tap("lab-check", ["tests/lab/check.py"])]
    # sparse's complaints count as the compiler's; the debug kernels' modules include the unit tests
    stages += [Build(f"build-{kernel}", build_module(kernel, "--siw", "--clean", *STRICT)) for kernel in STOCK]
    stages += [Build(f"build-{kernel}", build_module(kernel, "--clean", *STRICT, "C=1", "CHECK=sparse", "CF=-D__CHECK_ENDIAN__"))
               for kernel in BUILT[:2]]
    stages += [
        Build("build-arm64", build_module("arm64", "--clean", *STRICT)),
        Build("build-raised", build_module(STOCK[0], "--raised", "--clean", *STRICT)),
        Build("build-userland", make("userland", STRICT_TOOLS, clean=True)),
        Tap("completion", ["tests/completion"]),
        Tap("deb", ["tests/deb/contents"]),
        *(Tap(f"deb-install-{suite}", ["tests/deb/install", suite]) for suite in ("bookworm", "trixie")),
        *(Tap(f"first-use-{suite}", ["tests/first_use/run", suite]) for suite in ("bookworm", "trixie")),
        # a machine that has never seen the project
        Tap("fresh-demo", ["scripts/fresh", "make", "demo"]),
        Tap("fresh-lab", ["scripts/fresh", "sh", "-c", "make lab && scripts/vm run --pair -- echo 'ok 1 - a pair after make lab'"]),
        Tap("fuzz", ["tests/fuzz/run.py"]),
        Tap("models", ["tests/models/check", "--runs"]),
        Tap("models-mutants", ["tests/models/check", "--mutants"]),
        Build("build-rogue_peer", make("tests/rogue_peer", clean=True)),
        Kunit("kunit", guest(["--kernel", "debug", "--leaks", "--wire", "--smp", "2", "--timeout", "600"], "cat /sys/kernel/debug/kunit/*/results")),
        *e2e_quick("e2e-quick-loop", "loop"),
        *e2e_quick("e2e-quick-pair", "pair", family="one"),
        *e2e_quick("e2e-quick-lane", "loop", "--append", "sovia.loop_lane=1", family="one"),
        # through shared memory, where a socket cannot connect to itself: it has two links
        *e2e_quick("e2e-quick-clan", "loop", "--append", "sovia.clan_soft=1", family="one", only="not itself"),
    ]
    for kernel in STOCK[1:]:
        for mode in ("loop", "pair"):
            stages += e2e_quick(f"e2e-quick-{mode}-{kernel}", mode, "--kernel", kernel, family="one")
    stages += [
        # a debug kernel is slow: one family each
        *e2e_quick("e2e-quick-loop-debug", "loop", "--kernel", "debug", *leaks("e2e-quick-loop-debug"), slow=DEBUG_SLOW, family="4"),
        *e2e_quick("e2e-quick-pair-debug", "pair", "--kernel", "debug", *leaks("e2e-quick-pair-debug"), slow=DEBUG_SLOW, family="6"),
        *e2e_quick("e2e-quick-pair-siw", "pair", "--device", "siw"),
        # each case with one family; with the other one at night
        *e2e("e2e-loop", "loop", family="one"),
        *e2e("e2e-pair", "pair", family="one"),
        *e2e("e2e-loop-stock", "loop", family="other"),
        *e2e("e2e-pair-stock", "pair", family="other"),
        *e2e("e2e-pair-clan", "pair", "--clan", "--device", "none", family="one"),
        *e2e("e2e-pair-siw", "pair", "--device", "siw", family="other"),
        # the same sockets, opened as sovia-run --cgroup has them opened
        *e2e_quick("e2e-quick-loop-protocol", "loop", family="one", transport="protocol"),
        # AF_SOVIA here, and TCP at the other end
        *e2e_quick("e2e-quick-loop-fallback", "loop", family="one", transport="fallback"),
        *e2e("e2e-loop-fallback", "loop", family="one", transport="fallback"),
        *e2e("e2e-pair-fallback", "pair", family="other", transport="fallback"),
        # options reach TCP's socket in another way there
        *(stage for kernel in STOCK[1:]
          for stage in e2e(f"e2e-loop-fallback-{kernel}", "loop", "--kernel", kernel, family="one", transport="fallback",
                           only="options_all or becoming_tcp")),
        *e2e("e2e-pair-lanes", "pair", "--append", "sovia.lanes=4 sovia.cqs=2", family="4"),
    ]
    # Of the two, each has the cases with one family, but the other one.
    for kernel, families in zip(STOCK[1:], (("one", "other"), ("other", "one"))):
        for mode, family in zip(("loop", "pair"), families):
            stages += e2e(f"e2e-{mode}-{kernel}", mode, "--kernel", kernel, family=family)
    # Tracking every allocation doubles a debug kernel's time: the quick ones look for leaks.
    for kernel, family in zip(BUILT[:2], ("one", "other")):
        stages += e2e(f"e2e-loop-{kernel}", "loop", "--kernel", kernel, slow=DEBUG_SLOW, family=family)
    stages += [
        *e2e("e2e-pair-debug", "pair", "--kernel", "debug", slow=DEBUG_SLOW, family="one"),
        *e2e_quick("e2e-quick-pair-debug-6.12", "pair", "--kernel", "debug-6.12", *leaks("e2e-quick-pair-debug-6.12"), slow=DEBUG_SLOW, family="other"),
    ]
    for script in sorted(glob.glob(os.path.join(ROOT, "tests/vm/*.sh"))):
        name = os.path.splitext(os.path.basename(script))[0]
        options = guest_options(script)

        def add(suffix="", *more):
            watch = leaks(f"vm-{name}{suffix}") if "debug" in (*options, *more) else []
            command = "bash " + shlex.quote(os.path.relpath(script, ROOT))
            for number, option in parts(f"vm-{name}{suffix}"):
                stages.append(Tap(f"vm-{name}{suffix}{number}", guest([*options, *more, *watch], command + option)))

        add()
        for kernel in ON_OTHERS.get(name, ()):
            add(f"-{kernel}", "--kernel", kernel)
        if name in OVER_IWARP:
            add("-siw", "--device", "siw")
        for dma, kernel in ON_DMA.get(name, ()):
            add(f"-{dma}" + (f"-{kernel}" if kernel == BUILT[1] else ""), "--kernel", kernel, "--profile", "mlx5", "--dma", dma)
        for kernel, profiles in ON_PROFILES.get(name, {}).items():
            for profile in profiles:
                add(f"-{profile}" + ("" if kernel == STOCK[0] else f"-{kernel}"), "--kernel", kernel, "--profile", profile,
                    *(["--device", "siw"] if profile in IWARP_PROFILES else []))
    return stages


def with_needs(stages):
    """The same and, before them, preparations for what none of them makes.  All have their needs."""
    found = {stage.name: stage for stage in stages}
    rest = list(stages)
    preparations = []
    while rest:
        stage = rest.pop()
        stage.needs = needs(stage.name, stage.command)
        for name in stage.needs:
            if name not in found:
                found[name] = Preparation(name, PREPARATIONS[name])
                preparations.append(found[name])
                rest.append(found[name])
    return preparations + stages


def pair_stages(hosts, device):
    """Stages that run on two machines, by names without vm- or -pair."""
    stages = [Tap(f"e2e-{number}", ["--timeout", "1800", f"tests/e2e/run.py --transport sovia --mode pair --family one --part {number}/4"])
              for number in range(1, 5)]
    for script in sorted(glob.glob(os.path.join(ROOT, "tests/vm/*.sh"))):
        given = guest_options(script)
        if "--pair" not in given or on_lab_only(script) or {"--kernel", "--no-module", "--mem"} & set(given):
            continue
        given = dict(zip(given, given[1:]))
        if given.get("--device", device) == device:
            name = os.path.splitext(os.path.basename(script))[0]
            text = read_script(script)
            options = [f"--with=.build/{folder}" for folder in ("programs", "rogue_peer") if folder in text]
            # guests get the module's parameters from their command line
            options += [f"--parameter={word[len('sovia.'):]}" for word in given.get("--append", "").split() if word.startswith("sovia.")]
            stages.append(Tap(name, ["--timeout", given.get("--timeout", "300"), *options, f"bash tests/vm/{name}.sh"]))
    for stage in stages:
        *limit, command = stage.command
        stage.command = ["scripts/hosts", *hosts, *limit, "--", command]
        stage.needs = ["build-rogue_peer"]
    return [Preparation("build-rogue_peer", PREPARATIONS["build-rogue_peer"]), *stages]


def on_lab_only(script):
    with open(script) as file:
        return "\n# lab:" in file.read()


def named(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def chosen(patterns, tier):
    """Stages that are named or, if none is, those of the tier: "quick", "lint", "all" or None."""
    stages = all_stages(tier == "all")
    if patterns:
        for pattern in patterns:
            if not any(named(stage.name, [pattern]) for stage in stages):
                sys.exit(f"check: no stage is named {pattern}; --list --all shows them")
        return [stage for stage in stages if named(stage.name, patterns)]
    if tier in ("quick", "lint"):
        return [stage for stage in stages if named(stage.name, QUICK if tier == "quick" else LINT)]
    return [stage for stage in stages if tier == "all" or not named(stage.name, NIGHTLY + ONLY_QUICK)]


def nightly():
    return [stage for stage in all_stages() if named(stage.name, NIGHTLY)]
