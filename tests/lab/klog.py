#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Does scripts/vm recognise kernel reports?

A run passes if there is no report in the kernel's log, so a report that is not
recognised is a bug that goes unnoticed.  One of each kind, as 6.1 or 6.12 print
it, and harmless lines that look similar.
"""

import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [ROOT + "/scripts", ROOT + "/tests/vm/lib"]
import tap                  # noqa: E402
from labvm import klog      # noqa: E402

STAMP = "[   12.345678] "
CONSOLE = "<4>[   12.345678][  T101] "

# One line each that has to be found.
REPORTS = {
    "oops": "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "oops, 2": "Oops: 0002 [#1] PREEMPT SMP KASAN",
    "fault": "general protection fault, probably for non-canonical address 0xdffffc0000000003",
    "BUG()": "kernel BUG at net/core/skbuff.c:120!",
    "panic": "Kernel panic - not syncing: Fatal exception in interrupt",
    "WARN()": "WARNING: CPU: 1 PID: 77 at kmod/link/link.c:300 link_down+0x12/0x90 [sovia]",
    "WARN()'s first line": "------------[ cut here ]------------",
    "KASAN": "BUG: KASAN: use-after-free in sovia_lane_receive+0x3d/0x120 [sovia]",
    "KASAN, 6.12": "BUG: KASAN: slab-use-after-free in sovia_lane_receive+0x3d/0x120 [sovia]",
    "KFENCE": "BUG: KFENCE: out-of-bounds read in sovia_recvmsg+0x80/0x200 [sovia]",
    "UBSAN bounds": "UBSAN: array-index-out-of-bounds in kmod/lane/lane_rx.c:88:14",
    "UBSAN shift": "UBSAN: shift-out-of-bounds in kmod/lane/credit.h:40:9",
    "UBSAN bool": "UBSAN: invalid-load in kmod/sock/recv.c:40:9",
    "lockdep, order": "WARNING: possible circular locking dependency detected",
    "lockdep, interrupts": "WARNING: inconsistent lock state",
    "lockdep, key": "INFO: trying to register non-static key.",
    "lockdep, full": "BUG: MAX_LOCKDEP_CHAINS too low!",
    "RCU usage": "WARNING: suspicious RCU usage",
    "RCU stall": "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "RCU stall, others": "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "sleep in atomic": "BUG: sleeping function called from invalid context at mm/slab.h:420",
    "schedule in atomic": "BUG: scheduling while atomic: iperf3/321/0x00000201",
    "soft lockup": "watchdog: BUG: soft lockup - CPU#0 stuck for 52s! [sovia-connd:99]",
    "hard lockup": "watchdog: Watchdog detected hard LOCKUP on cpu 1",
    "workqueue": "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 40s!",
    "hung task": "INFO: task python3:412 blocked for more than 60 seconds.",
    "ODEBUG free": "ODEBUG: free active (active state 0) object type: timer_list hint: sovia_sk_timeout+0x0/0x40",
    "ODEBUG free, 6.12": "ODEBUG: free active (active state 0) object: ffff888004a1 object type: work_struct hint: verbs_fail_work",
    "ODEBUG off": "ODEBUG: Out of memory. ODEBUG disabled",
    "refcount": "refcount_t: underflow; use-after-free.",
    "refcount, saturated": "refcount_t: addition on 0; use-after-free.",
    "ref_tracker": "leaked reference.",
    "ref_tracker, put": "reference already released.",
    "ref_tracker, 6.12": "ref_tracker: net notrefcnt@ffff888003d10 has 1/1 users at",
    "namespace or device": "unregister_netdevice: waiting for eth1 to become free. Usage count = 2",
    "kmemleak": "kmemleak: unreferenced object 0xffff888004a8c000 (size 192):",
    "kmemleak's sum": "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "kmemleak off": "kmemleak: Cannot allocate a kmemleak_object structure",
    "slab overwritten": "BUG kmalloc-64 (Tainted: G           OE     ): Right Redzone overwritten",
    "slab not empty": "kmem_cache_destroy SOVIA: Slab cache still has objects when called from proto_unregister+0x9d/0x110",
    "slab not empty, 6.12": "BUG SOVIA (Tainted: G           OE     ): Objects remaining on __kmem_cache_shutdown()",
    "page state": "BUG: Bad page state in process iperf3  pfn:04a8c",
    "page_pool": "page_pool_release_retry() stalled pool shutdown 3 inflight 60 sec",
    "page_pool, 6.12": "page_pool_release_retry() stalled pool shutdown: id 7, 3 inflight 60 sec",
    "list": "list_del corruption. prev->next should be ffff888004a8, but was dead000000000100",
    "stack": "Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: sovia_sendmsg",
    "DMA": "DMA-API: rxe 0000: device driver frees DMA memory with different size",
    "socket": "IPv4: Attempt to release alive inet socket 00000000c1f0e0a1",
    "our leak check": "leak check: sockets 1",
}

HARMLESS = {
    "the module's own messages": "sovia: link to fd77::2: peer timed out",
    "a checker's announcement": "DMA-API: preallocated 65536 debug entries",
    "lockdep's announcement": "... MAX_LOCKDEP_CHAINS:        131072",
    "an injected fault": "FAULT_INJECTION: forcing a failure.",
    "kmemleak at rest": "kmemleak: Kernel memory leak detector disabled",
    "a module from outside": "sovia: loading out-of-tree module taints kernel.",
    "the word in a name": "systemd: Starting NO-WARNING: service",
}

RACE = """\
==================================================================
BUG: KCSAN: data-race in {first} / {second}

write to 0xffff888004a8c0f4 of 4 bytes by task 301 on cpu 0:
 {first}+0x4c/0x90
 {caller}+0x21/0x60
 do_syscall_64+0x35/0x80

read to 0xffff888004a8c0f4 of 4 bytes by interrupt on cpu 1:
 {second}+0x1c/0x70

value changed: 0x00000001 -> 0x00000002

Reported by Kernel Concurrency Sanitizer on:
CPU: 1 PID: 0 Comm: swapper/1
=================================================================="""

QUEUED = """\
==================================================================
BUG: KASAN: use-after-free in {where}+0x94/0xa0 [rdma_rxe]
Read of size 1 at addr ffff88800e3edb95 by task ksoftirqd/0/14

Allocated by task 352:
 sovia_conn_send+0x48d/0x780 [sovia]
=================================================================="""

SINGLE_STEP = """\
------------[ cut here ]------------
WARNING: CPU: 0 PID: 9 at arch/x86/kernel/traps.c:974 exc_debug_kernel+0x9a/0x110
EFLAGS: {flags} CR0: 80050033
---[ end trace 0000000000000000 ]---"""


def log(text, stamp=STAMP):
    return "".join(f"{stamp}{line}\n" for line in text.split("\n"))


def race(first, second, caller="sock_sendmsg"):
    return log(RACE.format(first=first, second=second, caller=caller))


def main():
    for name, text in REPORTS.items():
        tap.check(klog.reports(log(text)) and klog.reports(log(text, CONSOLE)), f"found: {name}")
    for name, text in HARMLESS.items():
        tap.check(not klog.reports(log(text)) and not klog.reports(log(text, CONSOLE)), f"ignored: {name}")

    tap.check(klog.reports(race("sovia_send [sovia]", "sovia_tx_ready [sovia]")), "found: KCSAN, ours")
    tap.check(klog.reports(race("skb_queue_tail", "skb_dequeue", "sovia_rx [sovia]")), "found: KCSAN, called by us")
    tap.check(not klog.reports(race("tcp_poll", "tcp_data_queue")), "ignored: KCSAN, not ours")
    tap.check(klog.reports(race("tcp_poll", "tcp_data_queue") + race("sovia_poll [sovia]", "sovia_rx [sovia]")),
              "found: KCSAN, ours after another")
    tap.check(klog.reports("\n".join(race("tcp_poll", "tcp_ack").splitlines()[:5])), "found: KCSAN, cut off")
    tap.check(not klog.reports(log(QUEUED.format(where="rxe_resp_queue_pkt"))), "ignored: soft RoCE of 6.1 reads what it has queued")
    tap.check(klog.reports(log(QUEUED.format(where="rxe_responder"))), "found: another one of soft RoCE")
    tap.check(klog.reports(log(QUEUED.format(where="rxe_resp_queue_pkt") + "\nBUG: KASAN: use-after-free in sovia_push+0x1/0x2 [sovia]")),
              "found: ours after it")
    tap.check(klog.reports(log(SINGLE_STEP.format(flags="00000106"))), "found: single step")
    tap.check(not klog.reports(log(SINGLE_STEP.format(flags="3f40a106"))), "ignored: single step of the emulator")

    crash = log("Oops: 0002 [#1] PREEMPT SMP NOPTI\nRSP: 0010:ffa0000000003ea0 EFLAGS: {flags}\nRAX: 0000000000000000")
    tap.check(klog.impossible(klog.reports(crash.format(flags="07dc2483"))), "a crash of the emulator")
    tap.check(not klog.impossible(klog.reports(crash.format(flags="00010246"))), "a crash of the kernel")

    trap = log("Oops: int3: 0000 [#1] SMP NOPTI\nCode: 83 ec 18 {before} <90> e8 a1 80 ec ff")
    tap.check(klog.impossible(klog.reports(trap.format(before="66"))), "a breakpoint of the emulator")
    tap.check(not klog.impossible(klog.reports(trap.format(before="cc"))), "a breakpoint of the kernel")

    trace = log("BUG: KASAN: use-after-free in f\nRead of size 8\nCall Trace:\n dump_stack+0x1/0x2")
    tap.check(len(klog.reports(trace)) == 4, "a report comes with what follows")
    tap.check(len(klog.reports(trace, trace)) == 4, "console and dmesg count once")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
