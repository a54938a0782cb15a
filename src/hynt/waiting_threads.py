"""How the threads of matrix products wait for one another: asleep, once a short spin has brought nothing.

Where other programs are at work too, threads that wait by spinning take the processor from those that work, and a
minute becomes ten. A short spin before they sleep costs nobody anything and saves waking them at every turn.
"""

from __future__ import annotations

import os


def let_threads_sleep() -> None:
    """Says so to OpenMP, unless somebody did; it hears it when torch is loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
