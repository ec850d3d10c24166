"""Holds the threads of a process that have a name where they next ask for a file, until the process ends: hold-threads.py PID NAME.

That is how threads are whose disk no longer answers. One that waits for work is not held: it would keep those waiting who bring it some."""

import ctypes
import os
import platform
import signal
import sys

SEIZE, INTERRUPT, GO_ON, ASKED = 0x4206, 0x4207, 24, 0x420E
MARKED, ENTRY, ALL_THREADS = 1, 1, 0x40000000
# openat, pread64, pwrite64, fsync, fdatasync, renameat, renameat2, unlinkat, linkat, and what x86 has besides.
FILES = {
    "x86_64": {257, 17, 18, 74, 75, 264, 316, 263, 265, 2, 82, 87, 86},
    "aarch64": {56, 67, 68, 82, 83, 38, 276, 35, 37},
}[platform.machine()]  # fmt: skip

process, name = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def trace(request, thread, address=None, data=None):
    if libc.ptrace(request, thread, address, data) < 0:
        sys.exit(f"ptrace of thread {thread}: {os.strerror(ctypes.get_errno())}")


def asks_for_file(thread):
    """What stops here is about to call the kernel for a file."""
    facts = (ctypes.c_uint64 * 11)()
    trace(ASKED, thread, ctypes.sizeof(facts), ctypes.addressof(facts))
    return facts[0] & 0xFF == ENTRY and facts[3] in FILES


def named(thread):
    with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8") as file:
        return file.read().strip() == name


threads = [thread for thread in map(int, os.listdir(f"/proc/{process}/task")) if named(thread)]
for thread in threads:
    trace(SEIZE, thread, None, MARKED)
    trace(INTERRUPT, thread)
held = 0
print(f"watched {len(threads)}", flush=True)
while True:
    try:
        thread, status = os.waitpid(-1, ALL_THREADS)
    except ChildProcessError:
        break
    if not os.WIFSTOPPED(status):
        continue
    if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80 and asks_for_file(thread):
        held += 1
        if held == len(threads):
            print("held", flush=True)
    else:
        trace(GO_ON, thread)
