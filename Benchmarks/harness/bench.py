"""What a run of the benchmark has: its folder, its origin, the binary, the length and number of rounds, the C programs."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from .origin import origin
from .processes import CLIENT_CORE, SERVER_CORE, Failure, Server, free_port, process, wait_for_port

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(HERE)
BUILT = os.path.join(HERE, ".build")
COUNTING_TOOLS = ("nginx", "taskset", "cc", "pkg-config", "valgrind", "objcopy")
SECURE_TOOLS = (*COUNTING_TOOLS, "wrk", "haproxy", "openssl")
TOOLS = (*SECURE_TOOLS, "varnishd", "squid", "traffic_server")
DESCRIPTORS = 65536


class Bench:
    def __init__(self, folder, binary, rounds, seconds):
        self.folder, self.binary, self.rounds, self.seconds = folder, os.path.abspath(binary), rounds, seconds
        self.origin = None
        self.folders_made = 0

    def scratch(self, name):
        """A new folder for one process."""
        self.folders_made += 1
        path = os.path.join(self.folder, f"{self.folders_made}-{name}")
        os.makedirs(path)
        os.chmod(path, 0o755)
        return path


def look_for_servers():
    """Debian keeps servers' programs where a user's PATH does not look."""
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"


def check_machine(tools, *binaries):
    for binary in binaries:
        if not os.access(binary, os.X_OK):
            raise Failure(f"{binary} is missing: run 'make build'")
    for tool in tools:
        if shutil.which(tool) is None:
            raise Failure(f"{tool} is missing: run '.ci/need bench'")
    if len(os.sched_getaffinity(0)) < 2:
        raise Failure("two cores are needed: one for the server, one for the client")


def allow_descriptors():
    """For 10,000 connections; servers inherit it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for limit in (max(hard, DESCRIPTORS), hard):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, DESCRIPTORS), limit))
            return


@contextlib.contextmanager
def running(binary, rounds, seconds):
    """The origin runs, and what is made is removed at the end."""
    # Ended from outside, it ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {int(CLIENT_CORE)})
    allow_descriptors()
    folder = tempfile.mkdtemp(prefix="drydock-bench-")
    os.chmod(folder, 0o755)
    try:
        bench = Bench(folder, binary, rounds, seconds)
        with origin(bench) as bench.origin:
            yield bench
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compile_c(name, *flags):
    """The program NAME or library NAME.so from NAME.c, made anew when the source is newer."""
    program, source = os.path.join(BUILT, name), os.path.join(HERE, name.removesuffix(".so") + ".c")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        os.makedirs(BUILT, exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", program, source, *flags], check=True)
    return program


def bare_program():
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libevent_core"], check=True, capture_output=True, text=True
    ).stdout.split()
    return compile_c("bare_loop", *flags)


@contextlib.contextmanager
def bare_loop(bench, size, keys=0, wrapper=(), loops=1, core=SERVER_CORE):
    """The limit: one answer of `size` bytes, or one for each of `keys` keys."""
    port, log = free_port(), os.path.join(bench.scratch("bare-loop"), "log")
    command = [*wrapper, bare_program(), str(port), str(size), str(keys), str(loops)]
    with process(command, log, core=core) as child:
        wait_for_port(port, child, log)
        yield Server("bare loop", port, [child], log=log, is_proxy=False)
