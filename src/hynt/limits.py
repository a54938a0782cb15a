"""How much of anything hynt takes from a file or a request that it did not make: the one list of such bounds.

They are checked before memory is taken, from what a file says of itself, and are far above what people have.
`docs/reference/limits.md` says what each refuses, and what to do for data that is honest and larger.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_LINE = 16 * 2**20
"""Bytes of a line of text, and of a single text or name in RDF."""

WATCHED_OUTPUT = 64 * 2**20
"""Bytes below which nothing is called a bomb, however small its archive: it does no harm."""

MOST_EXPANSION = 200
"""Bytes that one byte of a file may become: decompressed, decoded, or with prefixes written out."""

ROWS_PER_BYTE = 20
"""Rows that one byte of a Parquet file may stand for, beyond the first million. Facts that differ take more room."""

WATCHED_ROWS = 1_000_000
"""Rows below which nobody asks how many bytes they take."""

LARGEST_INDEX = 16 * 2**20
"""Bytes of a manifest, or of another file of JSON that lies in a graph or a run."""

LARGEST_SETTINGS = 1_000_000
"""Bytes of a file of settings."""

PARSER_MEMORY = 512 * 2**20
"""Bytes of memory for a parser of whole documents (Turtle, TriG, RDF/XML), which runs in a process of its own."""

PARSER_SECONDS = 5
"""Seconds of a processor for such a parser, and as many for each MiB besides: documents need a tenth of that."""

DEEPEST_RDF = 100
"""How deep RDF's statements about statements may be nested. No fact has more than one level."""

SMALL_DOCUMENT = 32 * 2**10
"""Bytes of RDF that no nesting and no prefix can make large: read without a process of its own."""

MODEL_MEMORY = 2**30
"""Bytes that a model of a saved run may take beyond what the file of its weights accounts for."""

MOST_COUNTED = 10**9
"""What a setting that counts something may say where it has no maximum of its own: epochs, facts of a step, layers."""

LARGEST_FACTOR = 1e38
"""What a setting that is no count may say, or less than nothing by as much: models compute in single precision."""

MOST_TENSORS = 4_000
"""Tensors of a model that is to be trained: two hundred layers have fewer."""


def is_out_of_proportion(made: int, taken: int) -> bool:
    """Whether so many bytes, made of so many, are those of a bomb."""
    return made > WATCHED_OUTPUT and made > MOST_EXPANSION * taken


def memory_here() -> int:
    """Bytes that this process can have at most; where nobody can tell, more than there are."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    bounds = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    with suppress(OSError, ValueError):  # of a container
        bounds.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(bound for bound in bounds if bound != resource.RLIM_INFINITY)])


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """Within the block the process may take so many bytes more; beyond them Python and Arrow raise a `MemoryError`.

    What a file says of its size may be a lie: this holds where it is. On systems that cannot, nothing is bounded.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    bounds = [bound for bound in (soft, hard, now + more) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
