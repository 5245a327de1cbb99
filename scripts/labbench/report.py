# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Medians, spreads, ratios, and tables of them."""

import statistics

from .figures import GROUPS

# By path: the system whose ratios are reported, and the systems of each column that it is compared with.
OURS = {"wire": "AF_SOVIA", "host": "AF_SOVIA, loop"}
EVENTS, POLLING = "verbs, events", "verbs, polling"
OTHERS = {"wire": {"TCP": ["TCP"], "LANEVI": ["LANEVI"], "kernel": ["verbs, kernel"], "verbs": [EVENTS, POLLING], "rsockets": ["rsockets"],
                   "SMC-R": ["SMC-R"], "RDS": ["RDS"], "memory": ["memory, kernel"]},
          "host": {"TCP": ["TCP, loopback"], "AF_UNIX": ["AF_UNIX"]}}
PATHS = {"wire": "over the wire", "host": "within one host"}
MARGIN = 2      # percent: smaller changes of instructions are not marked


def rival(figure, systems):
    """The system to compare with: for round trips the first one, which sleeps, otherwise the best."""
    median = figure["median"]
    there = [system for system in systems if system in median]
    if not there:
        return None
    if figure["better"] == "more":
        return max(there, key=median.get)
    return there[0]


def summarize(figure):
    """Adds medians, spreads and ratios.  A ratio above 1 means that AF_SOVIA has
    the larger number, whether larger is better or not."""
    figure["median"], figure["spread_percent"], figure["extra"] = {}, {}, {}
    for system, samples in figure["samples"].items():
        values = [sample["value"] for sample in samples]
        if not values:
            continue
        middle = statistics.median(values)
        figure["median"][system] = middle
        figure["spread_percent"][system] = 100 * (max(values) - min(values)) / abs(middle) if middle else 0.0
        figure["extra"][system] = {key: statistics.median(sample[key] for sample in samples)
                                   for key in samples[0] if key != "value"}
    ours = figure["median"].get(OURS[figure["path"]])
    figure["ratio"] = {}
    for column, systems in OTHERS[figure["path"]].items():
        other = rival(figure, systems)
        known = ours is not None and other and figure["median"][other]
        figure["ratio"][column] = ours / figure["median"][other] if known else None


def digits(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


# Further numbers of a sample, shown in an extra row.
MORE = {"adapter": ("mapped",), **{group: ("p99",) for group in ("redis", "nginx", "pgbench", "web", "rpc")}, "latency": ("min", "p90", "p99", "p999"), "hotspot": ("p90", "p99", "p999"), "scaling": ("median", "p99"),
        "connect": ("median", "p99"), "load": ("p90", "p99"), "duplex": ("out", "in"),
        "memory": ("client", "server", "slab")}


class Table:
    def __init__(self, figures, before):
        self.figures = figures
        self.before = before
        found = {system: 0 for figure in figures for system in figure["samples"]}
        self.systems = [system for system in found if any(system in figure["median"] for figure in figures)]
        self.others = [other for other in figures[0]["ratio"] if any(figure["ratio"][other] for figure in figures)]

    def row(self, figure):
        cells = [f"{figure['name']}, {figure['unit']}"]
        for system in self.systems:
            median = figure["median"].get(system)
            spread = f" ({figure['spread_percent'][system]:.0f} %)" if len(figure["samples"].get(system, ())) > 1 else ""
            cells.append("-" if median is None else digits(median) + spread)
        cells += [digits(figure["ratio"][other]) if figure["ratio"][other] else "-" for other in self.others]
        return cells + ([self.change(figure)] if self.before else [])

    def change(self, figure):
        then = self.before.get((figure["path"], figure["name"], figure["unit"]))
        now = figure["median"].get(OURS[figure["path"]])
        if not then or now is None:
            return "-"
        percent = 100 * (now / then - 1)
        return f"{percent:+.1f} %" + (" !" if abs(percent) >= MARGIN else "")

    def more(self, figure):
        keys = [key for key in MORE.get(figure["group"], ())
                if any(key in extra for extra in figure["extra"].values())]
        if not keys:
            return []
        cells = [" " + ", ".join(keys).replace("p999", "p99.9")]
        for system in self.systems:
            extra = figure["extra"].get(system) or {}
            shown = [digits(extra[key]) if key in extra else "-" for key in keys]
            cells.append(", ".join(shown) if extra else "-")
        return [cells + [""] * (len(self.others) + bool(self.before))]

    def lines(self, more=True):
        rows = [["", *self.systems, *(f"/ {other}" for other in self.others), *(["change"] if self.before else [])]]
        for figure in self.figures:
            rows += [self.row(figure)] + (self.more(figure) if more else [])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        shown = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
        return [shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]]


def tables(result, before):
    """Titles and tables: one per group, or a single one if all figures have the same unit."""
    quick = result["circumstances"]["mode"] == "quick"
    for path in PATHS:
        figures = [figure for figure in result["figures"] if figure["path"] == path]
        for group in ["all"] if quick else GROUPS:
            chosen = [figure for figure in figures if quick or figure["group"] == group]
            if chosen:
                title = "Thousands of instructions" if quick else f"{group.capitalize()}: {GROUPS[group]}"
                yield f"{title}, {PATHS[path]}", Table(chosen, before)


def explain(about):
    if about["mode"] == "quick":
        yield "Instructions of the one guest that is both ends, sockets and fabric."
    yield (f"Medians of {about['reps']} interleaved repetitions, in brackets (largest - smallest) / median.  "
           "Ratios are AF_SOVIA's;")
    yield "/ verbs is to verbs with events where less is better, since both sleep, and otherwise to the better ones;"
    yield "/ kernel to verbs between two kernel threads, the optimum for a socket on kernel verbs; / LANEVI to TCP over a queue pair."
    where = "Machines" if about["mode"] == "hosts" else "Guests"
    emulated = f", {about['accelerator']}" if "accelerator" in about else ""
    yield (f"{where}: {about['mode']}, {about['kernel']}{emulated}, {about['cpus']} processor(s) each, MTU {about['mtu']}, "
           f"RDMA path MTU {about['rdma_mtu'] or '-'}, links over {' and '.join(about.get('links') or '-')};")
    yield f"sovia: {' '.join(f'{name}={value}' for name, value in about['parameters'].items())}."
    if about["mode"] == "hosts":
        yield f"Host: {about['host']}; {about['seconds']} s."
        return
    yield f"Host: {about['host']}, {about['qemu']}."
    yield (f"While this ran ({about['seconds']} s), others used {about['others_percent']} % of the host's processors, "
           f"{about['stolen_percent']} % were stolen.")


def notes(result):
    """One line per problem, with all figures that it affects."""
    found = {}
    for note in result["notes"]:
        found.setdefault((note["system"], note["text"]), []).append(note["figure"])
    for (system, text), figures in found.items():
        yield f"{system}: {', '.join(figures)}: {text}"


def print_report(result, earlier=None):
    """earlier: a result to compare with."""
    before = {(figure["path"], figure["name"], figure["unit"]): figure["median"].get(OURS[figure["path"]])
              for figure in earlier["figures"]} if earlier else None
    for title, table in tables(result, before):
        print(f"{title}\n")
        print("\n".join(table.lines(more=result["circumstances"]["mode"] != "quick")), end="\n\n")
    trouble = list(notes(result))
    if trouble:
        print("Not measured:\n" + "".join(f"- {line}\n" for line in trouble))
    print("\n".join(explain(result["circumstances"])))
