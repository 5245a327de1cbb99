# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The figures measured for each system, by groups."""

# Each: values of a default run, and values of a run with --all.
SIZES = {
    "split": ((1024, 4096, 32768), (64, 256, 1024, 4096, 16384, 32768, 65536)),
    "latency": ((4, 1024, 32768), (4, 16, 40, 64, 256, 1024, 4096, 16384, 32768)),
    "bandwidth": ((64, 1024, 16384, 65536), (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)),
    "duplex": ((16384,), (64, 1024, 16384, 65536, 262144, 1048576)),
}
COUNTS = {
    "scaling": ((1, 100), (1, 10, 100, 300, 1000)),
    "pairs": ((1, 16), (1, 2, 4, 16)),
    "streams": ((4,), (1, 2, 4, 8, 16)),
    "fanin": ((8,), (1, 2, 4, 8, 16)),
    "fanout": ((8,), (1, 2, 4, 8, 16)),
    "hotspot": ((0, 50), (0, 1, 10, 50, 100)),
    "bulk": ((0, 50), (0, 1, 10, 50)),
}
# as fractions of TCP's rate of round trips
LOADS = ((0.25, 0.5, 1.0), (0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25))
LOAD_CONNECTIONS = 16

GROUPS = {
    "latency": "half round trip of a message",
    "bandwidth": "one way",
    "duplex": "both ways at once",
    "split": "processors' time by end and mode, one way",
    "connect": "connections one after the other",
    "cpu": "processors' time of both ends together for a write, one way",
    "memory": "of a connection, both ends together",
    "scaling": "round trips of 64 B on many connections",
    "pairs": "round trips of 64 B of pairs of threads, each pair on one processor",
    "streams": "connections beside each other, 16 KB writes",
    "fanin": "many senders, one receiving thread, 16 KB writes",
    "fanout": "one sending thread, many receivers, 16 KB writes",
    "hotspot": "64 B half round trip beside connections that load another server",
    "bulk": "64 B half round trip beside connections that write 16 KB to the same server",
    "load": "64 B requests at a given rate, each answered",
}


class Figure:
    """A row: the result of one function of a system, or one number of it."""

    def __init__(self, group, path, series, name, unit, measure, axis=None, better="more", key="value"):
        self.group, self.path, self.series, self.name = group, path, series, name
        self.unit, self.better, self.axis = unit, better, axis
        self.measure = measure      # a system's sample
        self.key = key              # of the sample
        self.derived = []           # more rows of the same samples

    def describe(self, systems):
        return {"group": self.group, "series": self.series, "path": self.path, "name": self.name,
                "unit": self.unit, "better": self.better,
                "axis": self.axis and {"name": self.axis[0], "value": self.axis[1]},
                "samples": {system.name: [] for system in systems}}

    def sample(self, found):
        if self.key == "value":
            return found
        return {"value": found[self.key]} if self.key in found else None


def size_name(size):
    if size >= 1048576:
        return f"{size >> 20} MB"
    return f"{size} B" if size < 1024 else f"{size >> 10} KB"


def latency(path, size):
    return Figure("latency", path, "half round trip", f"half round trip, {size_name(size)}", "us",
                  lambda system: system.latency(size), ("bytes", size), "less")


def bandwidth(path, size):
    return Figure("bandwidth", path, "bandwidth", f"bandwidth, {size_name(size)}", "MB/s",
                  lambda system: system.bandwidth(size), ("bytes", size))


def duplex(path, size):
    return Figure("duplex", path, "both ways", f"both ways, {size_name(size)}", "MB/s",
                  lambda system: system.duplex(size), ("bytes", size))


def split(path, size):
    ends = [(f"{end}, {mode}", f"{end}_{mode}") for end in ("sender", "receiver") for mode in ("user", "kernel", "interrupts")]
    found = [Figure("split", path, text, f"writes of {size_name(size)}: {text}", "%", lambda system: system.split(size), ("bytes", size), "less", key)
             for text, key in ends]
    found[0].derived = found[1:]
    return found[0]


def cpu(path, size):
    return Figure("cpu", path, "write", f"a write of {size_name(size)}", "us",
                  lambda system: system.bandwidth(size), ("bytes", size), "less", "cpu")


def scaling(path, count):
    return Figure("scaling", path, "exchanges", f"round trips, {count} connections", "1/s",
                  lambda system: system.exchanges(count), ("connections", count))


def pairs(path, count):
    return Figure("pairs", path, "pairs", f"round trips, {count} pairs", "1/s",
                  lambda system: system.pairs(count), ("pairs", count))


def streams(path, count):
    return Figure("streams", path, "streams", f"{count} streams", "MB/s",
                  lambda system: system.streams(count), ("streams", count))


def fan(path, kind, count):
    series = {"fanin": "fan-in", "fanout": "fan-out"}[kind]
    return Figure(kind, path, series, f"{series}, {count} connections", "MB/s",
                  lambda system: system.fan(kind, count), ("connections", count))


def hotspot(path, count):
    return Figure("hotspot", path, "beside", f"half round trip beside {count}", "us",
                  lambda system: system.hotspot(count), ("connections", count), "less")


def bulk(path, count):
    beside = Figure("bulk", path, "beside", f"half round trip beside {count} writers", "us",
                    lambda system: system.bulk(count), ("connections", count), "less")
    if count:
        beside.derived = [Figure("bulk", path, "writers", f"{count} writers beside it", "MB/s", None,
                                 ("connections", count), key="mb_per_s")]
    return beside


def load(path, rate):
    response = Figure("load", path, "response", f"response at {rate}/s", "us",
                      lambda system: system.load(rate), ("offered/s", rate), "less")
    response.derived = [Figure("load", path, "throughput", f"throughput at {rate}/s", "1/s", None,
                               ("offered/s", rate), key="per_s")]
    return response


def connects(path):
    kinds = {"open": "warm link", "exchange": "and a byte each way", "http": "as HTTP/1.0 does, 8 KB"}
    found = [Figure("connect", path, kind, text, "1/s", lambda system, kind=kind: system.connects(kind))
             for kind, text in kinds.items()]
    if path == "wire":
        found.append(Figure("connect", path, "first", "first connect() of two nodes", "us",
                            lambda system: system.connects("first"), better="less"))
    return found


def memory(path):
    idle = Figure("memory", path, "idle", "idle", "B", lambda system: system.memory(), better="less")
    idle.derived = [Figure("memory", path, "active", "active", "B", None, better="less", key="active")]
    return [idle]


# Left out of a default run, which has to finish in a quarter of an hour.
NOT_DEFAULT = {"wire": ("split", "pairs", "fanin", "fanout", "bulk", "load"),
               "host": ("split", "duplex", "connect", "memory", "scaling", "pairs", "streams", "fanin", "fanout", "hotspot", "bulk",
                        "load")}


def usual(path, everything):
    return [group for group in GROUPS if everything or group not in NOT_DEFAULT[path]]


def choose(groups, everything, path, rate, sizes=None):
    """The figures of one path.  rate: of TCP's round trips.  sizes: other ones of messages."""
    extent = 1 if everything else 0
    makers = {"latency": latency, "bandwidth": bandwidth, "duplex": duplex, "split": split, "scaling": scaling, "pairs": pairs,
              "streams": streams, "hotspot": hotspot, "bulk": bulk}
    found = []
    for group in groups:
        if group in ("fanin", "fanout"):
            found += [fan(path, group, count) for count in COUNTS[group][extent]]
        elif group == "bulk":
            found += [maker(path, count) for count in COUNTS[group][extent] for maker in ((bulk, streams) if count else (bulk,))]
        elif group == "connect":
            found += connects(path)
        elif group == "memory":
            found += memory(path)
        elif group == "load":
            found += [load(path, max(1, round_number(part * rate))) for part in LOADS[extent]]
        elif group == "cpu":
            found += processors(path, extent, [figure for figure in found if figure.group == "bandwidth"])
        else:
            values = sizes if sizes and group in SIZES else (SIZES.get(group) or COUNTS[group])[extent]
            found += [makers[group](path, value) for value in values]
    return found


def processors(path, extent, measured):
    """Processor times, from the samples of bandwidths if those are measured."""
    for figure in measured:
        figure.derived = [cpu(path, figure.axis[1])]
    return [] if measured else [cpu(path, size) for size in SIZES["bandwidth"][extent]]


def round_number(value):
    """Rounds to two digits."""
    return int(float(f"{value:.2g}"))


# ---- in instructions -------------------------------------------------------

def cost(figure, name, scale):
    """Converts a rate to the cost of one unit.  A nanosecond is an instruction."""
    def measure(system):
        sample = figure.measure(system)
        return sample and {"value": scale / sample["value"]}
    return Figure(figure.group, figure.path, figure.series, name, "k insns", measure, figure.axis, "less")


def quick_sizes(groups, path, sizes):
    """Half round trips, and what 1 KB of a stream costs in writes of each size."""
    found = [latency(path, size) for size in sizes if "latency" in groups]
    for figure in found:
        figure.unit = "k insns"
    return found + [cost(bandwidth(path, size), f"1 KB in writes of {size_name(size)}", 1024) for size in sizes if "bandwidth" in groups]


def quick(path):
    """The figures of --quick.  A microsecond is a thousand instructions."""
    sizes = (4, 64, 1024, 32768) if path == "wire" else (4, 32768)
    found = [latency(path, size) for size in sizes]
    for figure in found:
        figure.unit = "k insns"
    found.append(cost(bandwidth(path, 64), "64 B, one of many writes", 64))
    found.append(cost(bandwidth(path, 1024), "1 KB in writes of 1 KB", 1024))
    found.append(cost(bandwidth(path, 65536), "1 KB in writes of 64 KB", 1024))
    if path == "wire":
        found += [cost(figure, name, 1e6) for figure, name in
                  zip(connects(path), ("connection", "connection, a byte each way", "connection, HTTP/1.0, 8 KB"))]
        found.append(cost(scaling(path, 100), "64 B round trip, one of 100", 1e6))
    return found
