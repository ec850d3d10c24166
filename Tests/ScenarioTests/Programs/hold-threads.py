"""Holds the threads of a process that have a name, until the process ends: hold-threads.py PID NAME."""

import ctypes
import os
import sys

SEIZE, INTERRUPT, ALL_THREADS = 0x4206, 0x4207, 0x40000000

process, name = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
for thread in map(int, os.listdir(f"/proc/{process}/task")):
    with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8") as file:
        if file.read().strip() != name:
            continue
    for request in (SEIZE, INTERRUPT):
        if libc.ptrace(request, thread, None, None) != 0:
            sys.exit(f"ptrace of thread {thread}: {os.strerror(ctypes.get_errno())}")
    os.waitpid(thread, ALL_THREADS)
print("held", flush=True)
while True:
    try:
        os.waitpid(-1, ALL_THREADS)
    except ChildProcessError:
        break
