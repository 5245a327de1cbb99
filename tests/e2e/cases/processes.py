# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sockets across fork and exec, with several descriptors, and passed between processes."""
import os
import socket
import subprocess
import sys

import pytest

from kit import pattern
from kit.case import eq, fails, ok
from kit.proc import Child
from kit.sock import Sock


def test_fork_both_use(t):
    """After fork, parent and child both write and read; the child's exit does not end the connection."""
    near, far = t.pair()

    def in_child():
        near.sendall(b"child")
        eq(near.recv_exact(4), b"hear")
    child = Child(in_child)
    eq(far.recv_exact(5), b"child")
    far.sendall(b"hear")
    child.wait()
    near.sendall(b"parent")
    eq(far.recv_exact(6), b"parent")
    far.sendall(b"more")
    eq(near.recv_exact(4), b"more")


def test_fork_many_writers(t):
    """Several processes write to one connection: every byte of each arrives."""
    near, far = t.pair()
    size = 100000
    children = [Child(near.sendall, bytes([i]) * size) for i in range(4)]
    near.close()
    data = far.recv_all()
    for child in children:
        child.wait()
    eq([data.count(bytes([i])) for i in range(4)], [size] * 4)


def test_fork_keeps_open(t):
    """The connection ends with its last descriptor, in whichever process that is."""
    near, far = t.pair()
    go, told = os.pipe()

    def wait_in_child():
        os.close(told)
        os.read(go, 1)
    child = Child(wait_in_child)
    near.close()
    task = t.bg(far.recv, 1)
    task.blocks(0.5)
    os.close(told)
    eq(task.result(), b"")
    child.wait()


def test_fork_shutdown(t):
    """shutdown() in one process takes effect for all."""
    near, far = t.pair()
    Child(near.shutdown, socket.SHUT_WR).wait()
    eq(far.recv(1), b"")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    far.sendall(b"other way")
    eq(near.recv_exact(9), b"other way")


def test_fork_before_connect(t):
    """A child connects the inherited socket, the parent uses it."""
    listener = t.listener()
    near = t.socket()
    Child(near.connect, (t.host(), listener.port())).wait()
    far, _ = listener.accept()
    near.sendall(b"parent")
    eq(far.recv_exact(6), b"parent")


def test_fork_while_connected_elsewhere(t):
    """Sockets opened by parent and child at the same time do not interfere."""
    listener = t.listener(backlog=64)
    where = (t.host(), listener.port())

    def connect_some():
        for _ in range(10):
            s = t.here.socket(t.family)
            s.connect(where)
            s.sendall(s.port().to_bytes(2, "big"))
            s.recv(1)
            s.close()
    children = [Child(connect_some) for _ in range(3)]
    for _ in range(30):
        far, address = listener.accept()
        eq(int.from_bytes(far.recv_exact(2), "big"), address[1])
        far.close()
    for child in children:
        child.wait()


def test_exec_cat(t):
    """cat with the connection as stdin and stdout, the way inetd starts a service."""
    near, far = t.pair()
    size = 300000
    with subprocess.Popen(["cat"], stdin=near.fileno(), stdout=near.fileno()) as cat:
        near.close()
        task = t.bg(far.send_pattern, size, 70)
        far.recv_pattern(size, 70)
        task.result()
        far.shutdown(socket.SHUT_WR)
        eq(far.recv(1), b"")
        eq(cat.wait(), 0)


def test_exec_python(t):
    """An executed program uses the connection by its descriptor number, with its names and types."""
    near, far = t.pair()
    program = ("import socket, sys\n"
               "s = socket.socket(fileno=int(sys.argv[1]))\n"
               "assert s.family == int(sys.argv[2]) and s.type == socket.SOCK_STREAM, s\n"
               "s.sendall(repr((s.getsockname()[:2], s.getpeername()[:2])).encode())\n")
    fd = near.fileno()
    want = repr((near.getsockname()[:2], near.getpeername()[:2])).encode()
    with subprocess.Popen([sys.executable, "-c", program, str(fd), str(int(t.family))], pass_fds=[fd]) as child:
        near.close()
        eq(far.recv_all(), want)
        eq(child.wait(), 0)


def test_close_on_exec(t):
    """With FD_CLOEXEC the executed program does not keep the connection, without it does."""
    for inherit in (False, True):
        near, far = t.pair()
        near.set_inheritable(inherit)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, close_fds=False) as cat:
            near.close()
            task = t.bg(far.recv, 1)
            if inherit:
                task.blocks(0.5)
                cat.stdin.close()
            eq(task.result(), b"")
            cat.stdin.close()


def test_inherited_listener(t):
    """Children of a listening process accept concurrently."""
    listener = t.listener(t.here, backlog=32)
    each = 5

    def serve():
        for _ in range(each):
            s, _ = listener.accept()
            s.sendall(str(os.getpid()).encode())
            s.close()
    children = [Child(serve) for _ in range(3)]
    answers = []
    for _ in range(3 * each):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), listener.port()))
        answers.append(int(s.recv_all()))
        s.close()
    for child in children:
        child.wait()
        eq(answers.count(child.pid), each, f"served by {child.pid}")


def test_dup(t):
    """A duplicate is the same socket; the connection ends with the last of them."""
    near, far = t.pair()
    fd = near.dup_fd()
    near.sendall(b"one")
    near.close()
    os.write(fd, b"two")
    eq(far.recv_exact(6), b"onetwo")
    far.sendall(b"back")
    again = Sock(t.family, fileno=os.dup2(fd, os.open("/dev/null", os.O_RDONLY)))
    eq(again.recv_exact(4), b"back")
    os.close(fd)
    again.shutdown(socket.SHUT_WR)
    eq(far.recv(1), b"")


def test_pass_connection(t):
    """A connection passed over a Unix socket works in the receiving process."""
    near, far = t.pair()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    go, told = os.pipe()

    def receive():
        near.close()
        os.read(go, 1)
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        s = Sock(t.family, fileno=fds[0])
        eq(s.recv_exact(4), b"ping")
        s.send_pattern(100000, 71)
    child = Child(receive)
    socket.send_fds(ours, [b"x"], [near.fileno()])
    # For a moment only the message refers to the connection.
    near.close()
    far.sendall(b"ping")
    os.write(told, b"x")
    eq(far.recv_pattern_to_eof(71), 100000)
    child.wait()


def test_pass_listener(t):
    """A listener passed to another process can accept there."""
    listener = t.listener(t.here)
    where = (t.host(t.here), listener.port())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    go, told = os.pipe()

    def serve():
        listener.close()
        os.read(go, 1)
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        s, _ = Sock(t.family, fileno=fds[0]).accept()
        s.sendall(b"served")
    child = Child(serve)
    socket.send_fds(ours, [b"x"], [listener.fileno()])
    listener.close()
    os.write(told, b"x")
    s = t.socket(node=t.there)
    s.connect(where)
    eq(s.recv_all(), b"served")
    child.wait()


@pytest.mark.families("4|6")
def test_pass_and_forget(t):
    """A connection in an unread message ends with the Unix socket."""
    near, far = t.pair()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    socket.send_fds(ours, [b"x"], [near.fileno()])
    near.close()
    task = t.bg(far.recv, 1)
    task.blocks(0.3)
    ours.close()
    theirs.close()
    eq(task.result(), b"")


def test_exit_closes(t):
    """exit() closes connections orderly."""
    listener = t.listener()

    def talk_and_go():
        s = t.here.socket(t.family)
        s.connect((t.host(), listener.port()))
        s.sendall(b"bye")
    child = Child(talk_and_go)
    far, _ = listener.accept()
    eq(far.recv_all(), b"bye")
    child.wait()


def test_threads_full_duplex(t):
    """One thread sends while another receives on the same socket."""
    near, far = t.pair()
    size = 1 << 20
    task = t.bg(far.echo)
    sender = t.bg(near.send_pattern, size, 72, 10000)
    near.recv_pattern(size, 72)
    sender.result()
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), size)


@pytest.mark.families("4|6")
def test_nonblocking_is_shared(t):
    """O_NONBLOCK belongs to the socket, so duplicates and children share it."""
    near, far = t.pair()
    fd = near.dup_fd()
    os.set_blocking(fd, False)
    fails("EAGAIN", os.read, near.fileno(), 1)
    Child(fails, "EAGAIN", os.read, near.fileno(), 1).wait()
    os.set_blocking(near.fileno(), True)
    far.sendall(b"x")
    eq(os.read(fd, 1), b"x")


@pytest.mark.families("4|6")
def test_shell_redirection(t):
    """A shell pipeline writes into the connection."""
    near, far = t.pair()
    data = pattern.piece(73, 0, 50000)
    with subprocess.Popen(["sh", "-c", "cat | cat >&3"], stdin=subprocess.PIPE,
                          preexec_fn=lambda: os.dup2(near.fileno(), 3), close_fds=False) as shell:
        near.close()
        task = t.bg(far.recv_all)
        shell.stdin.write(data)
        shell.stdin.close()
        ok(task.result() == data, "what the pipeline wrote")
