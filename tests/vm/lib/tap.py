# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""TAP, as tap.sh prints it for shell scripts.  scripts/check reads it."""

_results = []


def check(passed, name, detail=""):
    """Prints a result; on failure also the last lines of @detail."""
    _results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(_results)} - {name}", flush=True)
    if not passed:
        note("\n".join(detail.splitlines()[-60:]))
    return _results[-1]


def note(text):
    for line in text.splitlines():
        print(f"# {line}", flush=True)


def finish():
    """Prints the plan, and returns the exit status; no tests at all is a failure, too."""
    print(f"1..{len(_results)}", flush=True)
    return 0 if _results and all(_results) else 1
