"""What origin, clients and the one who disturbs them agree on: paths, bodies, versions, and who is down at the moment."""

import ctypes
import multiprocessing
import time

# What every process of the soak sees.  A version of a counter is current from the moment in which its POST was answered.
COUNTERS = 64
# How long a version of a clock's resource is current, and what its responses say of themselves, in seconds.
PERIOD = 5
MAX_AGE = 2
STALE_IF_ERROR = 10
# A fetch may have begun so long before the request that it answers.
SLACK = 15
# Requests within this time of an outage of either side may fail.
MARGIN = 3.0


class World:
    """Memory shared by the processes.

    Each word has one writer: the origin for `counters`, the one who disturbs for the others.  So there is no lock here,
    which an origin that is killed while it holds it would never give back: all clients then wait for ever.
    """

    def __init__(self, seed):
        self.seed = seed
        self.counters = multiprocessing.RawArray(ctypes.c_long, COUNTERS)
        self.stopped = multiprocessing.RawValue(ctypes.c_bool, False)
        # The last moment in which the daemon, or the origin, was away or had just come back; in the future while it is away.
        self.daemon_away = multiprocessing.RawValue(ctypes.c_double, 0.0)
        self.origin_away = multiprocessing.RawValue(ctypes.c_double, 0.0)

    def disturbed(self, since, origin_too=True):
        """Whether a request that began at `since` (time.time()) met an outage."""
        if self.daemon_away.value > since - MARGIN:
            return True
        return origin_too and self.origin_away.value > since - MARGIN


def body(path, version, size):
    """The bytes of a version: each line names both, so that no other response can be taken for it."""
    line = f"{path} version {version}\n".encode()
    return (line * (size // len(line) + 1))[:size]


def clock_version(now=None):
    return int((now if now is not None else time.time()) / PERIOD)


def is_too_old(version, asked):
    """Whether a version of a clock's resource is older than any rule allows for a request of that moment."""
    replaced = (version + 1) * PERIOD
    return asked - replaced > MAX_AGE + STALE_IF_ERROR + SLACK
