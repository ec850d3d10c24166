"""A service manager that keeps descriptors: service-manager.py SOCKET COMMANDS PROGRAM...

Starts PROGRAM with NOTIFY_SOCKET and FDSTORE, as systemd starts a unit with FileDescriptorStoreMax=, and keeps what it is given by FDSTORE=1.  COMMANDS is
a pipe whose lines are obeyed: `restart` ends the program by SIGTERM and starts it again, with what is kept as LISTEN_FDS; `crash` does so by SIGKILL;
`stop` ends it.  Prints a line for each start that is ready: the names of what was passed.
"""

import array
import os
import signal
import socket
import sys
import threading

path, commands, program = sys.argv[1], sys.argv[2], sys.argv[3:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(path)
kept = []
ready = threading.Semaphore(0)


def hear():
    while True:
        message, control, _, _ = manager.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
        passed = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                passed.frombytes(data[: len(data) - len(data) % passed.itemsize])
        lines = dict(line.split("=", 1) for line in message.decode().splitlines())
        name = lines.get("FDNAME", "stored")
        if lines.get("FDSTORE") == "1":
            kept.extend((name, descriptor) for descriptor in passed)
        else:
            for descriptor in passed:
                os.close(descriptor)
        if lines.get("FDSTOREREMOVE") == "1":
            for one in [one for one in kept if one[0] == name]:
                kept.remove(one)
                os.close(one[1])
        if lines.get("READY") == "1":
            ready.release()


def start():
    passed = list(kept)
    names = ":".join(name for name, _ in passed)

    def become():
        # Out of the way first of the numbers that they get.
        copies = [os.dup(descriptor) for _, descriptor in passed]
        while copies and min(copies) < 3 + len(copies):
            copies = [os.dup(copy) for copy in copies]
        for index, copy in enumerate(copies):
            os.dup2(copy, 3 + index, inheritable=True)
        os.closerange(3 + len(copies), 256)
        os.environ.update(NOTIFY_SOCKET=path, FDSTORE="16", LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(copies)), LISTEN_FDNAMES=names)
        os.execvp(program[0], program)

    pid = os.fork()
    if pid == 0:
        become()
    ready.acquire()
    print(f"ready {names}", flush=True)
    return pid


threading.Thread(target=hear, daemon=True).start()
child = start()
with open(commands) as lines:
    for line in lines:
        word = line.strip()
        os.kill(child, signal.SIGKILL if word == "crash" else signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
            print(f"ended with {os.waitstatus_to_exitcode(status)}", flush=True)
        if word == "stop":
            break
        child = start()
