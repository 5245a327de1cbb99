#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds the fuzzers, replays the corpus and earlier finds, and fuzzes.

    tests/fuzz/run.py [--runs N] [--seed N] [--coverage] [FUZZER...]
    tests/fuzz/run.py --minimize [FUZZER...]

N runs in total are divided among the fuzzers, each of which uses all processors.
New inputs stay in .build/fuzz/found, and the next run starts from there;
--minimize makes the smallest corpus/FUZZER with the same coverage.  With --coverage
(Debian's llvm) the lines of kmod/ reached by all inputs together are counted.

Prints TAP.  An input that causes a failure is kept and its name printed.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, ".build", "fuzz")
sys.path.insert(0, ROOT + "/tests/vm/lib")
import tap      # noqa: E402

# Share of all runs, in percent, and the longest input.
FUZZERS = {"wire": (40, 256), "rendezvous": (20, 1100), "state": (22, 48), "lane": (8, 512), "pair": (2, 512), "ring": (8, 400)}

STATUS = re.compile(r"^#(\d+)\s+(?:DONE|INITED|NEW|REDUCE|pulse|RELOAD)\s+cov: (\d+) ft: (\d+)", re.M)


def builds(name, *arguments):
    done = subprocess.run(["make", "-j2", "-C", HERE, f"O={BUILD}", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return tap.check(not done.returncode, name, done.stdout)


def corpus(name):
    return os.path.join(HERE, "corpus", name)


def found(name):
    path = os.path.join(BUILD, "found", name)
    os.makedirs(path, exist_ok=True)
    return path


def start(name, arguments):
    longest = FUZZERS[name][1]
    return subprocess.Popen([os.path.join(BUILD, name), f"-max_len={longest}", f"-artifact_prefix={BUILD}/{name}-",
                             *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            cwd=BUILD, text=True, errors="replace")


def finish(processes):
    """Their outputs, and whether all succeeded; output of failures is shown."""
    outputs, passed = [], True
    for process in processes:
        output = process.communicate()[0]
        outputs.append(output)
        if process.returncode:
            passed = False
            tap.note(f"status {process.returncode}\n" + output[-6000:])
    return outputs, passed


def replay(name):
    """Each input of the corpus is run once; an empty corpus is a failure."""
    files = sorted(glob.glob(os.path.join(corpus(name), "*")))
    # Without any it would fuzz, for ever.
    _, passed = finish([start(name, files)] if files else [])
    return tap.check(files and passed, f"{name}: {len(files)} inputs of the corpus")


def fuzz(name, runs, seed):
    begin = time.monotonic()
    jobs = os.cpu_count() or 1
    each = -(-runs // jobs)
    outputs, passed = finish([
        start(name, [f"-runs={each}", f"-seed={seed + i}", "-reload=1", found(name), corpus(name)]) for i in range(jobs)])
    # The last line of each shows the progress.
    last = [max(STATUS.findall(output), key=lambda m: int(m[0]), default=("0", "0", "0")) for output in outputs]
    done = sum(int(m[0]) for m in last)
    seconds = time.monotonic() - begin
    tap.check(passed and done >= runs, f"{name}: {runs} runs")
    tap.note(f"{name}: {done} runs in {seconds:.0f} s, {done / seconds:.0f} a second, "
             f"edges {max(int(m[1]) for m in last)}, features {max(int(m[2]) for m in last)}")
    return done


def minimize(name):
    """Edges count, not how often they were taken, or there would be hundreds of files."""
    fresh = corpus(name) + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    _, passed = finish([start(name, ["-set_cover_merge=1", "-use_counters=0", fresh, corpus(name), found(name)])])
    if passed:
        # Inputs with names once caused failures.
        for path in glob.glob(os.path.join(corpus(name), "*")):
            if not re.fullmatch(r"[0-9a-f]{40}", os.path.basename(path)):
                shutil.copy(path, fresh)
        shutil.rmtree(corpus(name), ignore_errors=True)
        os.rename(fresh, corpus(name))
    sizes = [os.path.getsize(path) for path in glob.glob(os.path.join(corpus(name), "*"))]
    tap.check(passed, f"{name}: {len(sizes)} inputs, {sum(sizes)} bytes")


def coverage(names):
    """Prints the lines of kmod/ that some input has reached."""
    where = os.path.join(BUILD, "coverage")
    if not builds("the fuzzers build with counters", "coverage"):
        return
    profiles = []
    for name in names:
        profiles.append(os.path.join(where, name + ".profraw"))
        inputs = [path for folder in (corpus(name), found(name)) for path in glob.glob(folder + "/*")]
        listed = os.path.join(where, name + ".inputs")
        os.makedirs(listed, exist_ok=True)
        for path in inputs:
            shutil.copy(path, listed)
        subprocess.run([os.path.join(where, name), "-runs=0", listed], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=dict(os.environ, LLVM_PROFILE_FILE=profiles[-1]))
    merged = os.path.join(where, "all.profdata")
    # standin.h is compiled into each, for different sides: ignore the mismatch.
    subprocess.run(["llvm-profdata", "merge", "-o", merged, *profiles], check=True)
    objects = [argument for name in names[1:] for argument in ("-object", os.path.join(where, name))]
    report = subprocess.run(["llvm-cov", "export", "-summary-only", "-format=lcov", "-instr-profile", merged,
                             os.path.join(where, names[0]), *objects], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for record in report.split("end_of_record"):
        source = re.search(r"^SF:.*/(kmod/\S+)$", record, re.M)
        if source:
            lines, hit = (int(re.search(rf"^{key}:(\d+)$", record, re.M)[1]) for key in ("LF", "LH"))
            tap.note(f"{source[1]}: {hit} of {lines} lines")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000000, metavar="N", help="total, default: two million")
    parser.add_argument("--seed", type=int, default=int(time.time()), metavar="N", help="random seed")
    parser.add_argument("--coverage", action="store_true", help="count the lines reached")
    parser.add_argument("--minimize", action="store_true", help="rewrite the corpus")
    parser.add_argument("names", nargs="*", metavar="FUZZER", help=", ".join(FUZZERS))
    options = parser.parse_args()
    names = options.names or list(FUZZERS)
    if set(names) - set(FUZZERS):
        parser.error(f"no such fuzzer: {', '.join(sorted(set(names) - set(FUZZERS)))}")

    if not builds("the fuzzers build"):
        return tap.finish()
    if options.minimize:
        for name in names:
            minimize(name)
        return tap.finish()

    tap.note(f"--seed {options.seed}")
    parts = sum(FUZZERS[name][0] for name in names)
    begin, done = time.monotonic(), 0
    for name in names:
        if replay(name):
            done += fuzz(name, options.runs * FUZZERS[name][0] // parts, options.seed)
    seconds = time.monotonic() - begin
    tap.note(f"{done} runs in {seconds:.0f} s, {done / seconds:.0f} a second")
    if options.coverage:
        coverage(names)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
