"""The workloads that are no rounds of requests: each has a name, a title, and a run that gives its result."""

from .cold import Cold
from .counts import WAYS, Count
from .entered import WALKS, Entered
from .memory import Entries, Idle, Resident
from .start import Start
from .waiting import Waiting

GROUPS = {
    "cold": lambda: [Cold()],
    "idle": lambda: [Idle(), Resident(), Entries()],
    "waiting": lambda: [Waiting()],
    "start": lambda: [Start()],
    "counts": lambda: [Count(way) for way in WAYS],
    "entered": lambda: [Entered(walk) for walk in WALKS],
}
