"""Processes of the benchmark: started pinned to a core, waited for, measured through /proc, and ended with their children."""

import contextlib
import dataclasses
import os
import re
import socket
import subprocess
import time

# Servers have one core, the client and the origin the other, so that no server waits for who measures it.
SERVER_CORE, CLIENT_CORE, BOTH_CORES = "0", "1", "0,1"
TICKS = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """What went wrong, for the user."""


def free_ports(count):
    """Ports of the loopback interface that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def free_port():
    return free_ports(1)[0]


def descendants(pid):
    """The process and all that came from it, as far as they still run."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as text:
                parents.setdefault(int(text.read().rpartition(")")[2].split()[1]), []).append(int(name))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


@dataclasses.dataclass
class Server:
    """A server that runs: where it listens, and the processes that belong to it."""

    name: str
    port: int
    children: list
    # Where it asks the origin.
    origin: int = 0
    log: str = ""
    access_log: str = ""
    # Whether its answers are those of an origin (a bare loop makes its own head).
    is_proxy: bool = True
    admin: str = ""
    # Where clients speak TLS.
    secure: int = 0

    def pids(self):
        return [pid for child in self.children for pid in descendants(child.pid)]

    def cpu(self):
        """Seconds of user and system time of all its processes, those that have ended included."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as text:
                total += sum(int(value) for value in text.read().rpartition(")")[2].split()[11:15])
        return total / TICKS

    def memory(self):
        """Bytes that are resident, and bytes of them that are anonymous."""
        totals = {"VmRSS": 0, "RssAnon": 0}
        for pid in self.pids():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as text:
                for name, value in re.findall(r"(VmRSS|RssAnon):\s+(\d+) kB", text.read()):
                    totals[name] += int(value) * 1024
        return totals["VmRSS"], totals["RssAnon"]


@contextlib.contextmanager
def process(command, log, core=None, **environment):
    """Starts a program with its output in the file `log`; ends it, and what it started, at the end."""
    if core is not None:
        command = ["taskset", "-c", core, *command]
    with open(log, "ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment}
        )
    try:
        yield child
    finally:
        family = descendants(child.pid) if child.poll() is None else []
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            child.wait()


def wait_for_port(port, child, log, seconds=120):
    end = time.monotonic() + seconds
    while child.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise Failure(f"{' '.join(child.args)} does not listen on {port}:\n{tail(log)}")


def tail(log, characters=3000):
    with contextlib.suppress(OSError), open(log, errors="replace") as text:
        return text.read()[-characters:]
    return ""


def output(command):
    """What a program prints, errors included; empty where it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return subprocess.CompletedProcess(command, 1, "", "")
