#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The other node's part in `run.py --mode pair`: holds sockets and runs calls on behalf of the cases.

One process per case. It exits when the case is over, which closes its sockets and ends its stuck threads.
"""
import argparse
import faulthandler
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pytest  # noqa: F401,E402: once, and not in the process of each case that needs it
from kit.node import CONTROL_PORT, Session, kernel_stacks  # noqa: E402


def serve(connection):
    session = Session(connection)
    if not session.serve() and session.busy:
        # The case failed, maybe because a call here does not return: log what is running.
        print("agent: a case failed while busy here:", list(session.busy.values()), file=sys.stderr)
        print("\n".join(kernel_stacks(os.getpid())), file=sys.stderr)
        faulthandler.dump_traceback(file=sys.stderr)
    sys.stderr.flush()
    # Not sys.exit(), which would wait for stuck threads.
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=CONTROL_PORT)
    options = parser.parse_args()

    listener = socket.create_server(("::", options.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    print(f"agent: listening on port {options.port}", flush=True)
    # SIG_IGN: no zombies, the exit status of a session is not used.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            serve(connection)
        connection.close()


if __name__ == "__main__":
    main()
