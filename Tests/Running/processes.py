"""Daemons that the scripts of the tests start: where they listen, and until when that is waited for."""

import socket
import time


def free_port():
    """A port of 127.0.0.1 that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, failure):
    """Returns once a daemon accepts at a port; raises `failure` with the reason if it has ended, or does not within 30 s."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if process.poll() is not None:
            raise failure(f"the daemon did not start: exit code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise failure("the daemon did not listen within 30 s")
