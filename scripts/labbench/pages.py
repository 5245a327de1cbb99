# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pages that scripts/figures makes: what each paper says, what is measured for it, and which ratios are compared."""

import re

from . import figures

OURS = "AF_SOVIA"
# The papers' names for what is measured here.
VIA = {"verbs, events": "VIPL", "verbs, polling": "VIPL_POLL", "LANEVI": "LANEVI", "LANEVI, 64 KB": "LANEVI, packets of 64 KB", "rsockets": "SOVIA",
       "AF_SOVIA": "KSOVIA", "verbs, kernel": "kVIPL", "TCP": "on the Ethernet below"}
SOFT = ("The device is a program of the same processors, whose time is in all of them: ratios are nearer to 1 than a card's.")


class Run:
    """A command that writes samples to the file RESULT, as scripts/bench does.  kernels: what is built for them before."""

    def __init__(self, argv, label="", kernels=(), convert=lambda found: found):
        self.argv, self.label, self.kernels, self.convert = argv, label, kernels, convert

    def once(self):
        """The command with one repetition of everything."""
        return [re.sub(r"(--(?:rounds|reps|pairs)) \d+", r"\1 1", word) if before != "--reps" else "1"
                for before, word in zip(["", *self.argv], self.argv)]


class Ratio:
    """
    Ours to another one, in a row of a run, or in two: what the paper has of the same two, and what is aimed at.  pairs: samples of both were
    taken by turns, so that it can be counted in how many of them ours was ahead.
    """

    def __init__(self, text, row, other, paper=None, goal=None, less=True, ours=OURS, key="value", run=0, other_row=None, pairs=None):
        self.text, self.row, self.other, self.paper, self.other_row = text, row, other, paper, other_row or row
        self.goal, self.less, self.ours, self.key, self.run = goal, less, ours, key, run
        self.pairs = ours.startswith(OURS) and self.other_row == row if pairs is None else pairs


class Page:
    """says: what was published, or None.  why: what it takes to read the figures."""

    def __init__(self, title, says, runs=(), ratios=(), why="", names=None, pictures=True, rows=()):
        self.title, self.says, self.runs, self.ratios, self.why = title, says, runs, ratios, why
        self.names, self.pictures = names or {}, pictures
        self.rows = rows            # of a page without measurements


def bench(*options, label="", systems=(), convert=lambda found: found):
    if "--reps" not in options:
        options += ("--reps", "2" if "--quick" in options else "3")
    return Run(["scripts/bench", *options, *(["--systems", ";".join(systems)] if systems else []), "--json", "RESULT"], label, (), convert)


def by_part(found):
    """Names rows of a load by the part of TCP's rate that is offered."""
    for series in ("response", "throughput"):
        rows = sorted((row for row in found["figures"] if row["series"] == series), key=lambda row: row["axis"]["value"])
        for row, part in zip(rows, figures.LOADS[1]):
            row["name"] = f"{series}, {part:.2f} of TCP's rate"
    return found


def guest(script, *vm, label="", kernel="stock"):
    """In guests.  Files of scripts/guest; RESULT and TOOLS stand in @script."""
    words = script.replace("TOOLS", f".build/bench/{kernel}")
    return Run(["scripts/vm", "run", *([] if kernel == "stock" else ["--kernel", kernel]), *vm, "--append", "kunit.enable=0" + ("" if script.startswith("apps.py") else " sovia.fallback=0"), "--", f"scripts/guest/{words}"],
               label, (kernel,))


def parts(found):
    """Of scripts/adapter-cost --json, as scripts/bench writes it."""
    rows = {}
    for one in found["costs"]:
        if one["figure"] not in ("half round trip of 4 B", "write of 64 KB"):
            continue
        for part, value in [("all", sum(one["parts"].values())), *one["parts"].items()]:
            figure = rows.setdefault((one["figure"], part), {
                "group": "profile", "series": one["figure"], "path": "wire", "name": f"{one['figure']}: {part}", "unit": "k insns", "better": "less",
                "axis": None, "samples": {}})
            figure["samples"][one["system"]] = [{"value": value / 1e3}]
    order = sorted(rows.items(), key=lambda row: (row[0][0], row[0][1] != "all", -max(s[0]["value"] for s in row[1]["samples"].values())))
    return {"circumstances": {"mode": "quick", "kernel": found["kernel"], "cpus": 1, "mtu": found["mtu"]},
            "systems": list(dict.fromkeys(one["system"] for one in found["costs"])), "figures": [row for _, row in order], "notes": []}


def sums(found):
    """Of scripts/adapter-cost --json: all parts together, and how often memory is mapped."""
    rows = {}
    for one in found["costs"]:
        figure = rows.setdefault(one["figure"], {"group": "adapter", "series": "adapter", "path": "wire", "name": one["figure"], "unit": "k insns", "better": "less",
                                                 "axis": None, "samples": {}})
        figure["samples"][one["system"]] = [{"value": sum(one["parts"].values()) / 1e3, "mapped": one["calls"]["dma_map_page_attrs"]}]
    return {"circumstances": {"mode": "quick", "kernel": found["kernel"], "cpus": 1, "mtu": found["mtu"]},
            "systems": list(dict.fromkeys(one["system"] for one in found["costs"])), "figures": list(rows.values()), "notes": []}


def adapter(*options, label=""):
    return Run(["scripts/adapter-cost", *options, "--systems", "AF_SOVIA;verbs, kernel;TCP", "--json", "RESULT"], label, (), parts)


def via_ratios(sizes, goals):
    return [Ratio(f"{OURS} / {other} ({VIA[other]}), {size}", f"half round trip, {size}", other, paper, goals.get(other))
            for other, paper in (("LANEVI", 0.78), ("rsockets", 1.09), ("verbs, events", 1.16), ("verbs, kernel", None)) for size in sizes]


def gate(device, mtu, kernel):
    return guest("gate.py --tools TOOLS --result RESULT --mode quick", "--wire", "--icount", "--device", device, "--mtu", str(mtu), "--timeout", "900",
                 label=f"{device}, MTU {mtu}, Linux {'6.1' if kernel == 'stock' else kernel}, thousand instructions", kernel=kernel)


# siw of 6.12 refuses a connection after READs.
GATES = [(device, mtu, kernel) for kernel in ("stock", "6.12") for mtu in (1500, 9000) for device in ("rxe", "siw") if (device, kernel) != ("siw", "6.12")]
APPS = ("redis, GET, 1 client", "redis, GET, 50 clients", "nginx, 1 KB, 20 connections", "nginx, 100 KB, 20 connections", "pgbench, selects, 1 client",
        "pgbench, selects, 8 clients")


def apps_ratios(goals):
    return [Ratio(f"{OURS} / TCP, {row}", row, "TCP", goal=goals.get(row), less=False) for row in APPS] + \
           [Ratio(f"{OURS} / TCP, {row}, p99", row, "TCP", key="p99") for row in APPS]


LATENCY = ("One way of 4 to 256 bytes: KSOVIA takes 1.7 us more than SOVIA, which takes 1.3 us more than VIPL with events; LANEVI takes 27.2 us, "
           "of which it spends 22 % for TCP/IP, so that KSOVIA / LANEVI is 0.78, KSOVIA / SOVIA 1.09, KSOVIA / VIPL 1.16.")
BANDWIDTH = ("One way: below 2 KB LANEVI is ahead, as TCP combines small messages; it is the slowest beyond 16 KB, with 760 Mb/s; KSOVIA is well "
             "ahead of SOVIA, and near SOVIA_POLL.")
ALL_VIA = ("verbs, events", "LANEVI", "rsockets", "AF_SOVIA", "verbs, kernel", "TCP")
STREAMS = ("verbs, events", "LANEVI", "LANEVI, 64 KB", "rsockets", "AF_SOVIA", "verbs, kernel", "TCP")
INSTRUCTIONS = "Instructions of the guest that is both ends, the software device's included."

PAGES = {
    "ksovia-table-1": Page(
        "KSOVIA, table 1: the mechanisms that are compared", "What stands here for each of them.",
        rows=[["the paper's", "description", "here"],
              ["VIPL_POLL", "VIPL, calls that do not block, in user space", "perftest, polling: \"verbs, polling\""],
              ["VIPL", "VIPL, calls that block, in user space", "perftest with -e: \"verbs, events\""],
              ["(kVIPL)", "the kernel's VIPL below KSOVIA and LANEVI", "tests/bench/kvipl: \"verbs, kernel\""],
              ["LANEVI", "TCP/IP over Emulex' driver", "tests/bench/klane: TCP/IP over a queue pair; \"LANEVI, 64 KB\" with segments of 64 KB"],
              ["SOVIA_POLL", "sockets in a library, calls that do not block", "none: rsockets poll for 10 us, then sleep"],
              ["SOVIA", "sockets in a library, calls that block", "librdmacm's rsockets"],
              ["KSOVIA", "sockets in the kernel, calls that block", "AF_SOVIA"]]),
    "ksovia-4": Page(
        "KSOVIA, figure 4: one way of small messages, in time", LATENCY,
        [bench("--figures", "latency", "--sizes", "4,64,256", "--reps", "9", "--paths", "wire", systems=ALL_VIA)],
        via_ratios(("4 B", "256 B"), {"LANEVI": 0.80}),
        "VIPL_POLL is left out: a guest that polls on its only processor keeps the device from working.  rsockets copy "
        "as SOVIA does, but over RDMA writes and with a completion channel of the kernel.  " + SOFT, VIA),
    "ksovia-4-instructions": Page(
        "KSOVIA, figure 4: one way of small messages, in instructions of both ends", LATENCY,
        [bench("--quick", "--figures", "latency", "--sizes", "4,8,16,32,64,128,256", "--paths", "wire", systems=ALL_VIA)],
        via_ratios(("4 B", "256 B"), {"LANEVI": 0.80, "verbs, kernel": 1.12}),
        INSTRUCTIONS + "  What is between AF_SOVIA and kernel threads is in :doc:`ksovia-5`: the system calls, the programs, the copies and the "
        "socket buffers, which a socket cannot do without, and the rest.  rsockets do not spin here (polling_time 0).", VIA),
    "ksovia-5": Page(
        "KSOVIA, figure 5: what a message of 4 bytes takes in each part",
        "Most of the difference between KSOVIA and SOVIA are the system calls; copies of small messages are negligible; the rest, \"baseline transmission\", "
        "is that of SOVIA.",
        [adapter(label="above the device"), adapter("--soft", label="with soft RoCE, and TCP's veth")],
        [Ratio("AF_SOVIA / verbs, kernel, above the device", "half round trip of 4 B: all", "verbs, kernel", run=0),
         Ratio("AF_SOVIA / verbs, kernel, with soft RoCE", "half round trip of 4 B: all", "verbs, kernel", goal=1.12, run=1),
         Ratio("AF_SOVIA / TCP, above the device", "half round trip of 4 B: all", "TCP", run=0)],
        "Of both ends: one send() and one recv().  Instructions are exact (a plugin of QEMU counts each by its address); the emulated device's are left "
        "out above, and TCP's device is veth, left out, too.  The guest's clock, by which :doc:`ksovia-4-instructions` goes, counts more: what the processor does while both ends wait.", pictures=False),
    "ksovia-6": Page(
        "KSOVIA, figure 6: one way, in time", BANDWIDTH,
        [bench("--figures", "bandwidth", "--sizes", "64,1024,4096,16384,65536", "--reps", "5", "--paths", "wire", systems=STREAMS)],
        [Ratio(f"{OURS} / LANEVI, writes of {size}", f"bandwidth, {size}", "LANEVI", goal=1.08 if size == "64 KB" else None, less=False)
         for size in ("64 B", "1 KB", "4 KB", "16 KB", "64 KB")] +
        [Ratio(f"{OURS} / {other}, writes of {size}", f"bandwidth, {size}", other, less=False) for other in ("LANEVI, 64 KB", "TCP") for size in ("1 KB", "64 KB")],
        "AF_SOVIA combines small writes, too (``combine``), but sends as soon as nothing of the connection is under way.  " + SOFT, VIA),
    "ksovia-6-instructions": Page(
        "KSOVIA, figure 6: one way, what 1 KB of a stream costs by the size of writes", BANDWIDTH,
        [bench("--quick", "--figures", "bandwidth", "--sizes", "64,256,1024,4096,16384,65536", "--paths", "wire", systems=STREAMS)],
        [Ratio(f"{OURS} / LANEVI, writes of {size}", f"1 KB in writes of {size}", "LANEVI") for size in ("1 KB", "4 KB", "16 KB", "64 KB")] +
        [Ratio(f"{OURS} / {other}, writes of {size}", f"1 KB in writes of {size}", other) for other in ("LANEVI, 64 KB", "TCP") for size in ("1 KB", "64 KB")],
        "Less is better.  AF_SOVIA combines small writes (``combine``), too, but as soon as nothing of the connection is under way it sends.", VIA),
    "ksovia-table-2": Page(
        "KSOVIA, table 2: files by FTP",
        "Files of 13,374,187 and 168,919,040 bytes on RAM disks, Mb/s: LANEVI 744.8 and 740.6, KSOVIA 816.3 and 826.1, a local copy "
        "1,619 and 1,027; so KSOVIA has 1.10 and 1.12 times LANEVI's rate.",
        [guest("ftp.py paper --tools TOOLS --result RESULT --rounds 3", "--pair", "--mem", "1536", "--timeout", "2400")],
        [Ratio("AF_SOVIA / LANEVI, 13,374,187 bytes", "13,374,187 bytes", "LANEVI", 1.10, 1.10, False),
         Ratio("AF_SOVIA / LANEVI, 168,919,040 bytes", "168,919,040 bytes", "LANEVI", 1.12, 1.12, False)] +
        [Ratio(f"AF_SOVIA / LANEVI, 168,919,040 bytes, {way}", f"168,919,040 bytes, {way}", "LANEVI", less=False) for way in ("put", "get")],
        "The sender's and the receiver's programs, both protocols and the device share two emulated processors, and the device has "
        "most of the time: what a protocol costs is a smaller part.  A rate is that of all bytes of both directions in the time that they took.  tnftp, which sends in the direction put, "
        "asks for a send buffer of 16 KB (SO_SNDBUF), in.ftpd, which sends in the direction get, does not: that this is why put is slow has not been shown by a run without it.  "
        "SOVIA's row has no counterpart: rsockets do not survive inetd.", pictures=False),
    "sovia-6": Page(
        "SOVIA, figure 6, tables 2 and 3, RDMA: registering against copying, fetching against sending",
        "Registering costs 3 to 4 us and grows with the size; copying is cheaper below 1 to 4 KB, so that SOVIA_HYBRID copies up to 2 KB.  RDMA write has no "
        "significant advantage for a byte stream.",
        [gate(*one) for one in GATES],
        [Ratio(f"offer / SEND, 64 KB, {device}, MTU {mtu}, {'6.1' if kernel == 'stock' else kernel}", "message, 64 KB", "SEND", goal=0.83, ours="offer", run=number)
         for number, (device, mtu, kernel) in enumerate(GATES)] +
        [Ratio("READ / SEND, 64 KB, rxe", "message, 64 KB", "SEND", ours="READ"), Ratio("WRITE / SEND, 64 KB, rxe", "message, 64 KB", "SEND", 1.0, ours="WRITE"),
         Ratio("registered / copied, 4 KB, rxe", "memory, 4 KB", "copied", ours="registered"),
         Ratio("registered / copied, 64 KB, rxe", "memory, 64 KB", "copied", ours="registered"),
         Ratio("registered / copied, 256 KB, rxe", "memory, 256 KB", "copied", ours="registered")],
        "Registering is a fast registration and an invalidation, both by the send queue; copying is one copy, from memory that no cache has.  An offer is all of: "
        "registration, SEND of 16 bytes, READ, SEND of the answer, invalidation.  The decision that these figures made is in :doc:`../../decisions`.  "
        "siw sends what is signaled and 4 KB or longer without a copy, which is why messages that are registered, all of which are, cost it less.  siw of 6.12 is left out: it refused the connection after READs.",
        pictures=False),
    "sovia-6-time": Page(
        "SOVIA, figure 6, RDMA: fetching against sending, in time", "RDMA write has no significant advantage for a byte stream.",
        [guest("gate.py --tools TOOLS --result RESULT --rounds 9 --sizes 4096,16384,65536,262144 --latency 4,4096,32768", "--pair", "--timeout", "1500")],
        [Ratio("offer / SEND, 64 KB", "message, 64 KB", "SEND", goal=0.83, ours="offer"), Ratio("READ / SEND, 64 KB", "message, 64 KB", "SEND", ours="READ"),
         Ratio("WRITE / SEND, 64 KB", "message, 64 KB", "SEND", 1.0, ours="WRITE")],
        "As :doc:`sovia-6`, between two guests over soft RoCE.  " + SOFT, pictures=False),
    "sovia-7": Page(
        "SOVIA, figure 7: without flow control, in instructions",
        "SOVIA_BASE, where each message is acknowledged before the next one, is far below native VIA; TCP is ahead of native VIA below 256 bytes, as it combines.",
        [bench("--quick", "--figures", "bandwidth", "--sizes", "64,256,1024,4096,16384,32768", "--paths", "wire", "--reps", "1", "--append",
               "sovia.window=1 sovia.ack_threshold=1 sovia.combine=N", systems=("verbs, events", "LANEVI", "AF_SOVIA"), label="AF_SOVIA as SOVIA_BASE")],
        [Ratio("SOVIA_BASE / native, writes of 32 KB", "1 KB in writes of 32 KB", "verbs, events")],
        "Less is better.  On one processor the wire has no latency, which is what waiting for an acknowledgment costs most: with 50 us each way it is in "
        ":doc:`sovia-8`.", {**VIA, "AF_SOVIA": "SOVIA_BASE"}),
    "sovia-8": Page(
        "SOVIA, figure 8: the effect of each optimization",
        "SOVIA_FLOWCNTL has a window, SOVIA_DACKS delays and piggybacks acknowledgments, SOVIA_COMBINE combines small messages: each of them is worth most "
        "for small messages; only the last one reaches native VIA's rates below 2 KB.",
        [guest("ladder.py --tools TOOLS --mode quick --delay 50 --seconds 0.2 --count 200 --result RESULT", "--wire", "--icount", "--timeout", "900")],
        [Ratio("DACKS / BASE, 64 B", "bandwidth, 64 B", "BASE", ours="DACKS"), Ratio("COMBINE / DACKS, 64 B", "bandwidth, 64 B", "DACKS", ours="COMBINE"),
         Ratio("COMBINE / BASE, 32 KB", "bandwidth, 32 KB", "BASE", ours="COMBINE")],
        "Combining is clocked by completions, not by a timer, so that a half round trip does not get longer."),
    "sovia-9": Page(
        "SOVIA, figure 9: half round trips on machines with two processors",
        "TCP 116.0, native VIA 68.6, SOVIA_SINGLE 89.7 us on M-VIA: 1.5 times what one processor takes; threads of their own for messages do not help.",
        [bench("--wire", "--smp", "2", "--figures", "latency", "--sizes", "4,1024", "--reps", "5", "--paths", "wire",
               systems=("verbs, polling", "verbs, events", "LANEVI", "rsockets", "AF_SOVIA, polling", "AF_SOVIA", "TCP", "TCP, polling"))],
        [Ratio("AF_SOVIA / verbs, events (native VIA), 4 B", "half round trip, 4 B", "verbs, events", 1.31)] +
        [Ratio(f"AF_SOVIA / {other}, {size}", f"half round trip, {size}", other) for other in ("LANEVI", "rsockets", "TCP") for size in ("4 B", "1 KB")] + [
         Ratio("AF_SOVIA, polling / AF_SOVIA, 4 B", "half round trip, 4 B", "AF_SOVIA", ours="AF_SOVIA, polling")],
        "One guest has both ends, each on a processor if the scheduler wants so.  " + SOFT, VIA),
    "sovia-10": Page(
        "SOVIA, figure 10: processors' time during a stream",
        "With writes of 32 KB the sender's processor is 8.7 % in the kernel and 1.4 % in user mode; the receiver is below 13 % in the kernel, and copies in user mode.",
        [bench("--figures", "split", "--sizes", "1024,4096,32768", "--reps", "3", "--paths", "wire", systems=("AF_SOVIA", "LANEVI", "TCP"))],
        (), "Sockets in the kernel copy there.  The programs' start and end are counted, too: probably most of the time in user mode, which is the same for all systems.  Counted "
        "in clock ticks.", pictures=False),
    "sovia-table-5": Page(
        "SOVIA, table 5: files by FTP",
        "Files of 13,827,767 and 65,257,948 bytes on RAM disks: TCP over LANE 288 and 256 Mb/s, SOVIA 736 and 552: 2.56 and 2.16 times as fast.",
        [guest("ftp.py paper --tools TOOLS --result RESULT --sizes 13827767,65257948 --rounds 3", "--pair", "--mem", "1024", "--timeout", "2400")],
        [Ratio("AF_SOVIA / LANEVI, 13,827,767 bytes", "13,827,767 bytes", "LANEVI", 2.56, None, False),
         Ratio("AF_SOVIA / LANEVI, 65,257,948 bytes", "65,257,948 bytes", "LANEVI", 2.16, None, False)],
        "As for :doc:`ksovia-table-2`.  The LANE driver of 2001 was slower than that of 2003, and than klane.", pictures=False),
    "clan-table-1": Page(
        "VIA over CLAN, table 1: half round trips of VIs",
        "0, 4 and 40 bytes take 3.4, 4.6 and 4.7 us by programmed I/O, 4.4, 6.4 and 6.8 by DMA; the network itself 2.6 (4 bytes): 1.77 times as much.",
        [guest("vilevel.py --tools TOOLS --result RESULT --figures latency --rounds 5", "--pair", "--memories", "2", "--timeout", "900", label="messages of up to 112 bytes in their entries"),
         guest("vilevel.py --tools TOOLS --result RESULT --figures latency --rounds 5 --inline 0", "--pair", "--memories", "2", "--timeout", "900",
               label="all messages in pages")],
        [Ratio("VI / memory, 4 B, both asleep while they wait", "half round trip, 4 B", "memory, asleep", 1.77, 1.8, ours="VI, asleep"),
         Ratio("VI / memory, 4 B, both polling", "half round trip, 4 B", "memory", 1.77, 1.8, ours="VI"),
         Ratio("in pages: VI / memory, 4 B, both asleep", "half round trip, 4 B", "memory, asleep", 2.46, ours="VI, asleep", run=1)],
        "Entries stand for programmed I/O, pages for DMA; in memory the processor copies both.  Polling, the memory alone is a cache line that one "
        "processor writes and another one reads, which takes 0.3 us; a VI has NAPI, a socket buffer and the ring's protocol on top, in emulated instructions.  A message has "
        "at least one byte.", pictures=False),
    "clan-6": Page(
        "VIA over CLAN, figure 6: one way of VIs",
        "Four receive buffers were enough: more gave little.  By programmed I/O 370 Mb/s at most, by DMA close to the link's 960 for long messages; there is a dip at "
        "128 bytes, where it switches.",
        [guest(f"vilevel.py --tools TOOLS --result RESULT --figures bandwidth --rounds 5{inline}", "--pair", "--memories", "2", "--ring", str(ring), "--timeout", "900",
               label=f"rings of {ring}{', all messages in pages' if inline else ''}") for ring, inline in ((256, ""), (32, ""), (4096, ""), (256, " --inline 0"))],
        [Ratio("four on their way / as many as fit, 64 KB", "one way, 64 KB", "VI", goal=0.95, less=False, ours="VI, four on their way"),
         Ratio("VI / memory, 64 KB", "one way, 64 KB", "memory", less=False, ours="VI")] +
        [Ratio(f"VI / memory, 64 KB, rings of {ring}", "one way, 64 KB", "memory", less=False, ours="VI", run=run) for run, ring in ((1, 32), (2, 4096))],
        "A message that is on its way here has not been taken by the reader's bottom half, so small ones wait for news of it; in the paper the network card had it."),
    "clan-7": Page(
        "VIA over CLAN, figure 7: answers at an offered load",
        "Both implementations show no degradation under load; a protocol made for it served 400,000 requests a second, about five times as many.",
        [guest("vilevel.py --tools TOOLS --result RESULT --figures load --rounds 3", "--pair", "--memories", "2", "--timeout", "900", label="between kernel threads"),
         bench("--clan", "--figures", "load", "--all", "--paths", "wire", "--reps", "3", systems=("AF_SOVIA", "TCP"), label="between sockets, 16 connections",
               convert=by_part)],
        [Ratio("VIs: at 1.25 of saturation / at 1.00", "answers at 1.25 of what each can", "VI", 1.0, 0.95, False, ours="VI", other_row="answers at 1.00 of what each can"),
         Ratio("sockets: answered at 1.25 of TCP's rate / at 1.00", "throughput, 1.25 of TCP's rate", OURS, less=False, run=1, other_row="throughput, 1.00 of TCP's rate"),
         Ratio("sockets / TCP, median response at half of TCP's rate", "response, 0.50 of TCP's rate", "TCP", run=1),
         Ratio("the memory alone / VIs, at 1.00 of what each can", "answers at 1.00 of what each can", "VI", 5.0, None, False, ours="memory")],
        "One connection, with up to 64 requests under way for VIs and 32 for the memory.  \"memory\" is the protocol made for it.  Rates are parts of what each answers "
        "in a closed loop, measured once before; those of sockets are parts of TCP's on 16 connections, which AF_SOVIA is far from being saturated by."),
    "clan-tcp": Page(
        "TCP over the same memory", "VIA over CLAN compares with another card; here IP over the rings of kclan has the memory that AF_SOVIA has.",
        [bench("--clan", "--figures", "latency,bandwidth", "--paths", "wire", "--reps", "5", systems=("AF_SOVIA", "TCP in the memory", "TCP in the memory, polling", "TCP"))],
        [Ratio(f"AF_SOVIA / TCP in the memory{poll}, {row}", row, f"TCP in the memory{poll}", less="half" in row) for poll in ("", ", polling")
         for row in ("half round trip, 4 B", "half round trip, 32 KB", "bandwidth, 1 KB", "bandwidth, 64 KB")],
        "Polling as AF_SOVIA does, for 500 us before a receiver sleeps.  TCP gives the device packets of up to 64 KB, whose checksums are not computed.  \"TCP\" is virtio's."),
    "sockets-24": Page(
        "High-performance sockets, figures 24, 26 and 27: all sizes, in instructions",
        "Over EMP 37 us to TCP's 125, and 840 Mb/s to 550; over VIA and InfiniBand a fifth of TCP's time, and 2.8 times IPoIB's rate.",
        [bench("--quick", "--figures", "latency,bandwidth", "--sizes", "1,4,16,64,256,1024,4096,16384,65536,262144", "--paths", "wire", "--reps", "1",
               systems=("verbs, kernel", "LANEVI", "AF_SOVIA", "TCP"))],
        [Ratio(f"AF_SOVIA / LANEVI, {row}", row, "LANEVI") for row in ("half round trip, 4 B", "half round trip, 1 KB", "1 KB in writes of 64 KB")],
        INSTRUCTIONS + "  LANEVI stands for IPoIB, which soft RoCE does not have; segmentation is by TCP, packets have 9,000 bytes.", VIA),
    "sockets-25": Page(
        "High-performance sockets, figure 25: a web server",
        "One server, three clients, a request and an answer of 4 bytes to 8 KB on each connection (HTTP/1.0), or eight of them: ahead of TCP in all of these.",
        [guest("apps.py --result RESULT --where pair --figures web --pairs 9", "--pair", "--mem", "1024", "--timeout", "1800")],
        [Ratio(f"AF_SOVIA / TCP, {row}", row, "TCP", less=False) for row in
         ("a request a connection, 4 B", "a request a connection, 8 KB", "eight requests a connection, 4 B", "eight requests a connection, 8 KB")],
        "nginx and ab.  TCP runs on the Ethernet below soft RoCE, which takes 20 thousand instructions for a message and has packets of 1 KB, each with a checksum of all of it.", pictures=False),
    "sockets-28": Page(
        "High-performance sockets, figure 28: streams beside each other", "SDP 500, IPoIB 200 MB/s with many streams of 16 KB writes.",
        [bench("--figures", "streams", "--all", "--paths", "wire", "--reps", "3", systems=("AF_SOVIA", "LANEVI", "TCP"))],
        [Ratio(f"AF_SOVIA / LANEVI, {n} streams", f"{n} streams", "LANEVI", 2.5 if n == 16 else None, None, False) for n in (1, 4, 16)],
        SOFT),
    "sockets-29": Page(
        "High-performance sockets, figure 29: a hot spot", "A half round trip of 16 KB gets 138 us longer with many clients, IPoIB's 456.",
        [bench("--figures", "hotspot", "--all", "--paths", "wire", "--reps", "3", systems=("AF_SOVIA", "LANEVI", "TCP"))],
        [Ratio(f"AF_SOVIA / LANEVI, beside {n}", f"half round trip beside {n}", "LANEVI") for n in (0, 10, 100)],
        "64 bytes.  Why LANEVI is so far ahead beside many, though its packets cross soft RoCE, too, is not understood: its queue pair has packets of all connections, and TCP may "
        "acknowledge several at once."),
    "sockets-30": Page(
        "High-performance sockets, figure 30: fan-in and fan-out", "Fan-in 687 MB/s, IPoIB 237; fan-out 477 and 175.",
        [bench("--figures", "fanin,fanout", "--all", "--paths", "wire", "--reps", "3", systems=("AF_SOVIA", "LANEVI", "TCP"))],
        [Ratio(f"AF_SOVIA / LANEVI, {way}, {n} connections", f"{way}, {n} connections", "LANEVI", {"fan-in": 2.9, "fan-out": 2.7}[way] if n == 16 else None, None, False)
         for way in ("fan-in", "fan-out") for n in (1, 16)],
        "The clients are threads of one node.  " + SOFT),
    "sockets-load": Page(
        "Offered load", None,
        [bench("--figures", "load", "--all", "--paths", "wire", "--reps", "3", systems=("AF_SOVIA", "LANEVI", "TCP"), convert=by_part)],
        [Ratio(f"AF_SOVIA / {other}, median response at {part} of TCP's rate", f"response, {part} of TCP's rate", other) for other in ("LANEVI", "TCP") for part in ("0.10", "0.50")] +
        [Ratio("AF_SOVIA: answered at 1.25 of TCP's rate / at 1.00", "throughput, 1.25 of TCP's rate", OURS, less=False, other_row="throughput, 1.00 of TCP's rate")],
        "The rates are parts of what TCP answers in a closed loop on 16 connections, measured once before.  " + SOFT),
    "sockets-ftp": Page(
        "High-performance sockets, 5.1.3: FTP of a large and of a small file", "512 MB in 6.84 s, TCP 11.8: 1.73 times the rate; a small file takes 0.53 of TCP's time.",
        [guest("ftp.py paper --tools TOOLS --result RESULT --sizes 65536,536870912 --rounds 1 --get", "--pair", "--mem", "2560", "--timeout", "2400")],
        [Ratio("AF_SOVIA / LANEVI, 536,870,912 bytes", "536,870,912 bytes", "LANEVI", 1.73, None, False)],
        "One sample, of the direction get alone, which is the better one for AF_SOVIA: :doc:`ksovia-table-2` has both.  In a run of both directions soft RoCE of 6.1 lost a queue pair, "
        "AF_SOVIA's and LANEVI's alike.  tnftp's rate of a small file is hardly the transfer.  " + SOFT, pictures=False),
    "eudp-flow": Page(
        "E-UDP, figures 2 to 4 and 9: time-flow charts of ten writes of 32 KB",
        "The layers of UDP wait for each other (figures 2 to 4); with E-UDP each of them works all the time, and the slowest one hides the others (figure 9).",
        [guest("flow.py --tools TOOLS --result RESULT --rounds 9", "--wire", "--smp", "2", "--timeout", "600")],
        [Ratio("AF_SOVIA / LANEVI, all ten", "from the first send() to the last byte read", "LANEVI"),
         Ratio("layers at work at once, AF_SOVIA / LANEVI", "layers at work at once, on average", "LANEVI", less=False)],
        "Both ends of one guest have a processor each and the same clock.  A gap in send() is the socket waiting for acknowledgments; TCP's packets are of up to 64 KB on this wire."),
    "loop": Page(
        "Within a host", "SMC's loopback publishes 0.57 of TCP's latency.",
        [bench("--wire", "--smp", "2", "--figures", "latency,bandwidth", "--paths", "host", "--reps", "9", label="in time, two processors"),
         bench("--quick", "--paths", "host", "--reps", "2", label="in instructions"),
         bench("--quick", "--kernel", "6.12", "--paths", "host", "--reps", "2", label="in instructions, Linux 6.12")],
        [Ratio("AF_SOVIA / TCP, 4 B, in time", "half round trip, 4 B", "TCP, loopback", 0.57, 0.57, ours="AF_SOVIA, loop"),
         Ratio("AF_SOVIA / TCP, 64 KB writes, in time", "bandwidth, 64 KB", "TCP, loopback", less=False, ours="AF_SOVIA, loop"),
         Ratio("AF_SOVIA / TCP, 4 B", "half round trip, 4 B", "TCP, loopback", ours="AF_SOVIA, loop", run=1),
         Ratio("AF_SOVIA / TCP, 1 KB in writes of 1 KB", "1 KB in writes of 1 KB", "TCP, loopback", goal=1.0, ours="AF_SOVIA, loop", run=1),
         Ratio("AF_SOVIA / AF_UNIX, 1 KB in writes of 1 KB", "1 KB in writes of 1 KB", "AF_UNIX", ours="AF_SOVIA, loop", run=1),
         Ratio("AF_SOVIA / TCP, 1 KB in writes of 64 KB", "1 KB in writes of 64 KB", "TCP, loopback", ours="AF_SOVIA, loop", run=1),
         Ratio("AF_SOVIA / TCP, 1 KB in writes of 1 KB, Linux 6.12", "1 KB in writes of 1 KB", "TCP, loopback", goal=1.0, ours="AF_SOVIA, loop", run=2)],
        "TCP holds writes of 1 KB back while one before has not been acknowledged, so that its reader is woken for many of them at once, and the last of a burst waits for "
        "an acknowledgment, which may be delayed (:doc:`loop-burst`).  AF_SOVIA and AF_UNIX wake the reader for each write that finds it asleep, and the scheduler of 6.1 lets it run at once, before "
        "the next write."),
    "loop-burst": Page(
        "Within a host: how long the last write of a burst waits", None,
        [guest("burst.py --result RESULT --rounds 40", "--smp", "2", "--timeout", "300")],
        [Ratio("AF_SOVIA / TCP", "two writes of 1 KB and an answer", "TCP, loopback", ours="AF_SOVIA, loop", pairs=False)],
        "What combining writes costs: TCP's second write is held back until the first one has been acknowledged, which its receiver delays as it has nothing to send.  None of "
        "them has TCP_NODELAY.", pictures=False),
    "apps-host": Page(
        "Servers within a host", "SMC's loopback publishes 1.42 for nginx, 1.37 for redis.",
        [guest("apps.py --result RESULT --where host --pairs 9", "--smp", "2", "--mem", "1536", "--timeout", "2400")],
        apps_ratios({"redis, GET, 1 client": 1.0, "redis, GET, 50 clients": 1.37, "nginx, 1 KB, 20 connections": 1.42, "nginx, 100 KB, 20 connections": 1.0}),
        "A guest with two processors.  TCP's servers have nothing of AF_SOVIA.  p99 in us, where less is better.", pictures=False),
    "apps-netns": Page(
        "Servers in another network namespace of the host", "SMC's loopback publishes 1.42 for nginx, 1.37 for redis.",
        [guest("apps.py --result RESULT --where netns --pairs 9", "--smp", "2", "--mem", "1536", "--timeout", "2400")],
        apps_ratios({"redis, GET, 50 clients": 1.37, "nginx, 1 KB, 20 connections": 1.42}),
        "Two namespaces that a veth joins, both with ``net.sovia.rendezvous=2``.  p99 in us, where less is better.", pictures=False),
    "apps-clan": Page(
        "Servers in another virtual machine, in memory that both share", None,
        [guest("apps.py --result RESULT --where pair --pairs 9", "--pair", "--clan", "--mem", "1024", "--timeout", "2400")],
        apps_ratios({}), "Two guests with one processor each.  TCP goes over virtio, and has interrupts for each packet; AF_SOVIA is in the shared memory, and polls for 500 us before it sleeps.  "
        "TCP's servers have nothing of AF_SOVIA.  p99 in us, where less is better.", pictures=False),
    "rpc": Page(
        "SOVIA, 2.3: RPC", "A library for remote procedure calls can have SOVIA below it, without a change of programs.",
        [guest("apps.py --result RESULT --where pair --figures rpc --pairs 9", "--pair", "--mem", "1024", "--timeout", "1200", label="between two guests, verbs"),
         guest("apps.py --result RESULT --where host --figures rpc --pairs 9", "--smp", "2", "--mem", "1024", "--timeout", "1200", label="within a host")],
        [Ratio(f"AF_SOVIA / TCP, {row}{text}", row, "TCP", less=False, run=run) for run, text in ((0, ""), (1, ", within a host"))
         for row in ("a call without arguments", "a call that returns its 32 KB")],
        "tests/bench/rpc.c over Debian's libtirpc.  " + SOFT, pictures=False),
    "instructions": Page(
        "What messages and connections cost", None,
        [bench("--quick", "--reps", "1", "--paths", "wire,host",
               systems=("AF_SOVIA", "TCP", "LANEVI", "verbs, kernel", "verbs, events", "rsockets", "RDS", "AF_SOVIA, loop", "TCP, loopback", "AF_UNIX"))],
        [Ratio(f"AF_SOVIA / {other}, {row}", row, other) for row, other in
         (("half round trip, 4 B", "TCP"), ("connection", "TCP"), ("connection, a byte each way", "TCP"), ("connection, HTTP/1.0, 8 KB", "TCP"), ("64 B round trip, one of 100", "TCP"),
          ("connection, a byte each way", "rsockets"), ("half round trip, 4 B", "RDS"))],
        INSTRUCTIONS, VIA, pictures=False),
    "adapter": Page(
        "What a card leaves to do", None,
        [Run(["scripts/adapter-cost", *options, "--json", "RESULT"], label, (), sums) for options, label in
         (((), "no IOMMU"), (("--dma", "iommu", "--systems", "AF_SOVIA"), "memory mapped with VT-d"),
          (("--kernel", "6.12", "--dma", "iommu", "--systems", "AF_SOVIA"), "memory mapped with VT-d, Linux 6.12"))],
        [Ratio(f"AF_SOVIA / {other}, {row}", row, other) for other in ("TCP", "TCP, packets of the MTU, GRO")
         for row in ("half round trip of 4 B", "write of 1 KB", "write of 16 KB", "write of 64 KB", "connection, a byte each way")],
        "The devices' own functions are left out, and for TCP those that segment at the sender.  \"TCP\" is the best that a card can do for it: segments of 64 KB from one "
        "end to the other; with GRO packets of the MTU are joined by the receiver.  Kernel threads on verbs neither copy nor look at what they get.  What a card's driver adds "
        "is less than 1.9 thousand: all of ``mlx5_ib``'s functions that post a send, post a receive and poll (928, 190 and 783 instructions, Debian's 6.1).  \"mapped\": pages mapped for a message.", pictures=False),
    "not-made": Page(
        "Figures that are not made", "What of the papers has no counterpart here, and why.",
        rows=[["figure", "reason"],
              ["SOVIA, table 1", "compares VIA implementations of 2001, of which none exists any more; :doc:`../../status` says which RDMA devices have been tried"],
              ["SOVIA, figure 5", "strategies of a library without a kernel: AF_SOVIA has a bottom half; a work item instead of it costs 5 % more (:doc:`../history`)"],
              ["VIA over CLAN, table 1: Emulex", "the card does not exist any more; IP over the same memory is in :doc:`clan-tcp`"],
              ["High-performance sockets, figures 22, 23: UQ, DG", "unexpected queues and datagrams are EMP's; DS and DA are in :doc:`sovia-8`"],
              ["High-performance sockets, figures 31 to 43", "data centre, PVFS, DataCutter: three tiers of 2004, and programs that are not to be had; servers of today are in :doc:`apps-host`"],
              ["High-performance sockets, table 1", "memory traffic of a byte: needs counters of the memory bus, which QEMU does not have"],
              ["E-UDP, figures 7, 10 to 14", "a model of a network card's firmware, and its predictions"],
              ["E-UDP, figure 8", "the card's processor: soft RoCE has none of its own; its part of the instructions is in :doc:`ksovia-5`"]]),
}

SUMMARY_HEAD = """=========================
What is faster than what
=========================

How AF_SOVIA compares, in one look: ratios of medians within one run on one fabric.  For times and costs less than 1 is better for AF_SOVIA, for rates more.  Each page has
the figures, the command and the commit, and what the papers say; "ahead in" counts pairs of samples.  In guests everything is emulated, and the RDMA device is a
program: nothing here says how fast AF_SOVIA is on hardware, where it has not run yet (:doc:`../status`).
"""
SUMMARY = [
    ("Over RDMA, against TCP over the same queue pair", "LANEVI is the papers' rival: IP emulated over the same verbs, with packets of 9,000 bytes; with packets of 64 KB it is what TCP can be there today.", [
        ("half round trip of 4 B, instructions", "ksovia-4-instructions", "AF_SOVIA / LANEVI (LANEVI), 4 B"),
        ("half round trip of 256 B, instructions", "ksovia-4-instructions", "AF_SOVIA / LANEVI (LANEVI), 256 B"),
        ("half round trip of 4 B, time", "ksovia-4", "AF_SOVIA / LANEVI (LANEVI), 4 B"),
        ("stream in writes of 64 KB, rate", "ksovia-6", "AF_SOVIA / LANEVI, writes of 64 KB"),
        ("stream in writes of 1 KB, rate", "ksovia-6", "AF_SOVIA / LANEVI, writes of 1 KB"),
        ("stream in writes of 64 KB, rate, packets of 64 KB", "ksovia-6", "AF_SOVIA / LANEVI, 64 KB, writes of 64 KB"),
        ("stream in writes of 1 KB, rate, packets of 64 KB", "ksovia-6", "AF_SOVIA / LANEVI, 64 KB, writes of 1 KB"),
        ("writes of 1 KB, instructions, packets of 64 KB", "ksovia-6-instructions", "AF_SOVIA / LANEVI, 64 KB, writes of 1 KB"),
        ("half round trip beside 100 busy connections, time", "sockets-29", "AF_SOVIA / LANEVI, beside 100"),
        ("response at a tenth of TCP's rate, time", "sockets-load", "AF_SOVIA / LANEVI, median response at 0.10 of TCP's rate"),
        ("response at half of TCP's rate, time", "sockets-load", "AF_SOVIA / LANEVI, median response at 0.50 of TCP's rate"),
        ("16 streams, rate", "sockets-28", "AF_SOVIA / LANEVI, 16 streams"),
        ("a file of 13 MB by FTP, rate", "ksovia-table-2", "AF_SOVIA / LANEVI, 13,374,187 bytes"),
        ("a file of 169 MB by FTP, rate", "ksovia-table-2", "AF_SOVIA / LANEVI, 168,919,040 bytes"),
        ("the same, put", "ksovia-table-2", "AF_SOVIA / LANEVI, 168,919,040 bytes, put"),
        ("the same, get", "ksovia-table-2", "AF_SOVIA / LANEVI, 168,919,040 bytes, get")]),
    ("Over RDMA, against others that use verbs", "Instructions, if nothing else is said.", [
        ("half round trip of 4 B, against rsockets", "ksovia-4-instructions", "AF_SOVIA / rsockets (SOVIA), 4 B"),
        ("half round trip of 4 B, against rsockets, time, two processors", "sovia-9", "AF_SOVIA / rsockets, 4 B"),
        ("half round trip of 4 B, against verbs in a program", "ksovia-4-instructions", "AF_SOVIA / verbs, events (VIPL), 4 B"),
        ("half round trip of 4 B, against verbs between kernel threads", "ksovia-4-instructions", "AF_SOVIA / verbs, kernel (kVIPL), 4 B"),
        ("half round trip of 4 B, against RDS", "instructions", "AF_SOVIA / RDS, half round trip, 4 B"),
        ("a connection with a byte each way, against rsockets", "instructions", "AF_SOVIA / rsockets, connection, a byte each way")]),
    ("What a card leaves to do", "Instructions above the device, where TCP has a card that segments for it.", [
        *((f"{row}, against TCP", "adapter", f"AF_SOVIA / TCP, {row}")
          for row in ("half round trip of 4 B", "write of 1 KB", "write of 16 KB", "write of 64 KB", "connection, a byte each way")),
        *((f"{row}, against TCP with packets of the MTU", "adapter", f"AF_SOVIA / TCP, packets of the MTU, GRO, {row}")
          for row in ("half round trip of 4 B", "write of 1 KB", "write of 16 KB", "write of 64 KB", "connection, a byte each way")),
        ("half round trip of 4 B, against kernel threads", "ksovia-5", "AF_SOVIA / verbs, kernel, above the device")]),
    ("Against TCP on the Ethernet below soft RoCE", "Soft RoCE costs more than all of TCP, so that what goes over it and sleeps while it waits loses here, verbs of programs and of the kernel included.", [
        ("half round trip of 4 B, instructions", "instructions", "AF_SOVIA / TCP, half round trip, 4 B"),
        ("half round trip of 4 B, time, two processors", "sovia-9", "AF_SOVIA / TCP, 4 B"),
        ("stream in writes of 64 KB, rate", "ksovia-6", "AF_SOVIA / TCP, writes of 64 KB"),
        ("a connection with a byte each way, instructions", "instructions", "AF_SOVIA / TCP, connection, a byte each way"),
        ("64 B round trip, one of 100 connections, instructions", "instructions", "AF_SOVIA / TCP, 64 B round trip, one of 100"),
        ("HTTP/1.0 with nginx, 4 B, rate", "sockets-25", "AF_SOVIA / TCP, a request a connection, 4 B"),
        ("HTTP/1.0 with nginx, 8 KB, rate", "sockets-25", "AF_SOVIA / TCP, a request a connection, 8 KB"),
        ("a call of RPC, rate", "rpc", "AF_SOVIA / TCP, a call without arguments"),
        ("a call of RPC that returns its 32 KB, rate", "rpc", "AF_SOVIA / TCP, a call that returns its 32 KB")]),
    ("Between virtual machines that share memory", "AF_SOVIA polls for 500 us before it sleeps.", [
        ("half round trip of 4 B, against TCP in the same memory, which polls, too", "clan-tcp", "AF_SOVIA / TCP in the memory, polling, half round trip, 4 B"),
        ("the same, but TCP sleeps", "clan-tcp", "AF_SOVIA / TCP in the memory, half round trip, 4 B"),
        ("stream in writes of 64 KB, rate", "clan-tcp", "AF_SOVIA / TCP in the memory, bandwidth, 64 KB")]),
    ("Between virtual machines that share memory, against TCP over virtio", "", [(f"{row}, rate", "apps-clan", f"AF_SOVIA / TCP, {row}") for row in APPS]),
    ("Within a host, against TCP", "", [
        ("half round trip of 4 B, time", "loop", "AF_SOVIA / TCP, 4 B, in time"),
        ("half round trip of 4 B, instructions", "loop", "AF_SOVIA / TCP, 4 B"),
        ("writes of 1 KB, instructions", "loop", "AF_SOVIA / TCP, 1 KB in writes of 1 KB"),
        ("writes of 64 KB, instructions", "loop", "AF_SOVIA / TCP, 1 KB in writes of 64 KB"),
        *((f"{row}, rate", "apps-host", f"AF_SOVIA / TCP, {row}") for row in APPS)]),
    ("Between two namespaces of a host, against TCP", "", [(f"{row}, rate", "apps-netns", f"AF_SOVIA / TCP, {row}") for row in APPS]),
]
SUMMARY_PICTURES = ("ksovia-4-latency", "ksovia-6-bandwidth", "loop-1-latency-host", "clan-tcp-latency")
