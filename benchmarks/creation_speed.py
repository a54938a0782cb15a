"""How fast a Wikidata dump becomes a graph, in how much memory, and how long the full dump would take.

    python -m benchmarks.creation_speed [--bytes 2000000000] [--stream-bytes 20000000000] [--spark] [--save FILE]

Dumps are generated in the real format (`creation_generated.py`). Each build is a fresh process; its memory is that of
all its processes together, looked at five times a second. Speeds "a core" are by processor time, so that other work on
the machine does not count; seconds are by the clock.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.creation_generated import write
from benchmarks.result_file import write_measured

FULL_BYTES = 1.7e12
"""Wikidata's whole dump as JSON, roughly: what the projection assumes. Give another size with --full-bytes."""

_KEPT_EVERY = 100
_SMALL_BYTES = 200_000_000


def skip_speed(path: Path, entities: Path, total: int) -> float:
    """MB/s of decompressed JSON that a core reads and skips when 1 % of the entities are kept."""
    from hynt.creation.options import Selection, read_ids
    from hynt.creation.parts import cut
    from hynt.creation.sources.source import ParseSettings, get_source
    from hynt.creation.tasks import FileRange

    kind = get_source("wikidata")
    select = kind.selector(Selection(frozenset(read_ids(entities))), ParseSettings())
    start = time.process_time()
    for _ in cut(FileRange(0, str(path)), kind, select, 4 << 20, threads=1):
        pass
    return total / (time.process_time() - start) / 1e6


def unpack_speed(path: Path, total: int) -> float:
    """MB/s of decompressed bytes a core, and nothing else done."""
    from hynt.creation.reading import DumpStream

    stream = DumpStream(path, threads=1)
    start = time.process_time()
    while stream.read(4 << 20):
        pass
    seconds = time.process_time() - start
    stream.close()
    return total / seconds / 1e6


def parse_speed(path: Path, total: int, workers: int) -> dict[str, int]:
    """MB/s of JSON that is parsed whole into parts: by the clock, and a core (reading and parsing together)."""
    from hynt.creation.options import Selection
    from hynt.creation.parts import ParseJob, parse_locally
    from hynt.creation.sources.source import ParseSettings
    from hynt.creation.tasks import BuildFolder, FileRange

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        work = BuildFolder(Path(folder) / "work")
        work.open({})
        job = ParseJob("wikidata", Selection(), ParseSettings(), 4 << 20, 256 << 20)
        start, busy = time.perf_counter(), _processor_seconds()
        parse_locally([FileRange(0, str(path))], job, work, workers, lambda summary: None, lambda done, total: None)
        seconds, busy = time.perf_counter() - start, _processor_seconds() - busy
        return {"clock": round(total / seconds / 1e6), "core": round(total / busy / 1e6)}


def _processor_seconds() -> float:
    """Of this process and of the ended ones that it started."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def build(path: Path, folder: Path, *options: str) -> dict[str, Any]:
    """One `hynt create`, with its seconds and the most memory that it and its children held at once."""
    out = folder / f"graph-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "hynt", "create", "wikidata", str(path), "--out", str(out), "--json", *options]
    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=told, stderr=said)
        while process.poll() is None:
            peak = max(peak, sum(resident(number) for number in family(process.pid)))
            time.sleep(0.2)
        seconds = time.perf_counter() - start
        told.seek(0)
        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode())
        result = json.loads(told.read())
    return {
        "seconds": round(seconds, 1),
        "peak_mb": peak >> 20,
        "facts": result["facts"]["kept"],
        "entities": result["counts"]["entities"],
    }


def family(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for number in found:
        for path in Path(f"/proc/{number}/task").glob("*/children"):
            try:
                found.extend(map(int, path.read_text().split()))
            except OSError:
                continue
    return found


def resident(process: int) -> int:
    """Bytes of memory that belong to a process alone, or its share of what it shares."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        return 0
    return 0


def projection(figures: dict[str, Any], full: float, cores: int) -> dict[str, float]:
    """Hours for the full dump: the slowest of unpacking (gzip on one core, bzip2 on all), skipping (one core) and all
    processor time together over all cores.
    """
    hours = {}
    skip, parse = figures["skip_mb_s_core"]["plain"], figures["parse_mb_s"]["core"]
    for packing in ("gz", "bz2"):
        unpack = figures["unpack_mb_s_core"][packing]
        for kept, share in (("1 %", 0.01), ("all", 1.0)):
            together = cores / (1 / unpack + 1 / skip + share / parse)
            reading = 1 / (1 / unpack + 1 / skip) if packing == "gz" else min(unpack * cores, skip)
            hours[f"{packing}, {kept} kept"] = round(full / 1e6 / min(together, reading) / 3600, 1)
    return hours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=2_000_000_000, help="size of the dump for the speeds")
    parser.add_argument("--stream-bytes", type=int, default=0, help="size of the dump for the memory, such as 20 GB")
    parser.add_argument("--full-bytes", type=float, default=FULL_BYTES, help="size of the dump projected to")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spark", action="store_true", help="build with Spark too, beside DuckDB")
    parser.add_argument("--folder", type=Path, help="where dumps are put while this runs")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"bytes": arguments.bytes, "workers": arguments.workers}
    workers = ["--workers", str(arguments.workers)]

    def note(name: str, value: Any) -> None:
        figures[name] = value
        print(f"{name}: {value}", flush=True)

    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        plain = folder / "dump.json"
        count = write(plain, arguments.bytes)
        size = plain.stat().st_size
        entities = folder / "entities.txt"
        entities.write_text("".join(f"Q{number}\n" for number in range(1, count, _KEPT_EVERY)), encoding="utf-8")
        note("line_bytes", size // count)
        packed = {ending: folder / f"dump.json.{ending}" for ending in ("gz", "zst", "bz2")}
        small = folder / "small.json"  # for what is slow: bzip2, and Spark
        write(small, min(arguments.bytes, _SMALL_BYTES))
        sizes = {"gz": size, "zst": size, "bz2": small.stat().st_size}
        for ending, path in packed.items():
            write(path, min(arguments.bytes, _SMALL_BYTES) if ending == "bz2" else arguments.bytes)
        note("unpack_mb_s_core", {ending: round(unpack_speed(path, sizes[ending])) for ending, path in packed.items()})
        skipped = {"plain": plain, "gz": packed["gz"], "zst": packed["zst"]}
        note("skip_mb_s_core", {ending: round(skip_speed(path, entities, size)) for ending, path in skipped.items()})
        note("parse_mb_s", parse_speed(plain, size, arguments.workers))
        note("build_1_percent_from_gz", build(packed["gz"], folder, "--entities", str(entities), *workers))
        note("build_all", build(plain, folder, "--all", "--keep-leakage", *workers))
        if arguments.spark:
            note("small_duckdb", build(small, folder, "--all", *workers))
            note(
                "small_spark",
                build(small, folder, "--all", "--engine", "spark", "--master", f"local[{arguments.workers}]"),
            )
        if arguments.stream_bytes:
            for path in packed.values():
                path.unlink()
            stream = folder / "stream.json.zst"
            many = write(stream, arguments.stream_bytes)
            entities.write_text("".join(f"Q{number}\n" for number in range(1, many, _KEPT_EVERY)), encoding="utf-8")
            figure = build(stream, folder, "--entities", str(entities), *workers)
            note("stream_1_percent", {**figure, "bytes": arguments.stream_bytes, "packed_bytes": stream.stat().st_size})
    for cores in (2, 64):
        note(f"projected_hours_{cores}_cores", projection(figures, arguments.full_bytes, cores))
    if arguments.save:
        write_measured(arguments.save, figures, str(__doc__))


if __name__ == "__main__":
    main()
