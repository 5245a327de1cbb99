# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes and signals for cases."""
import os
import select
import signal
import traceback


class Child:
    """A forked process that runs @function; an exception there fails the case."""

    def __init__(self, function, *args):
        self._report, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 0
            try:
                os.close(self._report)
                function(*args)
            except BaseException:       # noqa: BLE001: reported to the parent
                os.write(write_end, traceback.format_exc().encode())
                status = 1
            os._exit(status)
        os.close(write_end)

    def wait(self, timeout=30.0):
        """AssertionError unless the function returned within @timeout."""
        text = b""
        while True:
            if not select.select([self._report], [], [], timeout)[0]:
                self.kill()
                raise AssertionError(f"child process has not ended within {timeout} s")
            data = os.read(self._report, 65536)
            if not data:
                break
            text += data
        _, status = os.waitpid(self.pid, 0)
        if status:
            raise AssertionError(f"child process: wait status {status:#x}\n" + text.decode())

    def wait_status(self):
        return os.waitpid(self.pid, 0)[1]

    def kill(self):
        """SIGKILL, as in a crash: no handlers run."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def alarm(seconds, restart=False):
    """One SIGALRM to this process after @seconds. Its handler does nothing, so it only interrupts.

    For calls made through kit.libc: Python's own methods restart after an interruption.
    """
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, seconds)
