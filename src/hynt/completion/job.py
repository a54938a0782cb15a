"""What a job of many questions is, so that a stopped one is gone on with only where it is the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt import __version__
from hynt.asking.predictor import Predictor
from hynt.completion.batches import Wanted
from hynt.completion.parts import WorkFolder
from hynt.errors import UsageError
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.hashed_files import sha256_of

OnError: TypeAlias = Literal["stop", "record"]
META = b"hynt-completion"


def job_of(predictor: Predictor, questions: Path, wanted: Wanted, on_error: OnError) -> dict[str, Any]:
    """What must be the same for the parts of an output to belong together."""
    loaded = predictor.loaded
    weights = loaded.run.manifest["files"].get(WEIGHTS)
    return {
        "run": weights or f"unfinished, epoch {loaded.epoch}",
        "calibration": predictor.calibration.to_mapping(loaded.graph.vocabulary),
        "questions": sha256_of(questions),
        "top": wanted.top,
        "level": wanted.level,
        "candidates": sorted(wanted.candidates),
        "on_error": on_error,
        "hynt": __version__,
    }


def begun(work: WorkFolder, job: dict[str, Any], *, resume: bool) -> int | None:
    """How many questions the job that was begun has (0: not counted); None where none was."""
    state = work.state()
    if state is None:
        return None
    if not resume:
        raise UsageError(
            "a job was stopped before it was done with this output.",
            where=str(work.path),
            advice="Say --resume to go on with it, or remove this folder to begin anew.",
        )
    found = state.get("job")
    changed = [name for name in job if not isinstance(found, dict) or found.get(name) != job[name]]
    if changed:
        told = "; ".join(_difference(name, found, job) for name in changed)
        raise UsageError(
            f"the stopped job is not this one: {told}.",
            where=str(work.path),
            advice="Ask as before, or remove this folder to begin anew.",
        )
    return int(state.get("questions") or 0)


def _difference(name: str, before: Any, now: dict[str, Any]) -> str:
    words = {"run": "the run's weights", "calibration": "the run's calibration", "questions": "the file of questions"}
    if name in words or not isinstance(before, dict):
        return f"{words.get(name, name)} changed"
    return f"{name} was {before.get(name)!r} and is {now[name]!r}"


def metadata(job: dict[str, Any], predictor: Predictor, questions: int) -> dict[bytes, bytes]:
    """What travels in a finished output: how it was made, and how many questions it answers."""
    run = {**predictor.loaded.described(), "graph": predictor.graph.name}
    # Sorted: a calibration that was just made and one that was read from its file name their parts in another order.
    return {META: json.dumps({"job": job, "run": run, "questions": questions}, sort_keys=True).encode()}


def finished(out: Path, job: dict[str, Any]) -> int | None:
    """How many questions an output that is there already answers, where the same job made it."""
    if not out.is_file():
        return None
    try:
        meta = json.loads((parquet.read_schema(out).metadata or {})[META])
        return int(meta["questions"]) if meta["job"] == job else None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def rows_in(out: Path) -> int:
    """How many rows an output has."""
    return int(parquet.read_metadata(out).num_rows)


def refused_in(out: Path) -> int:
    """How many rows say why there is no answer: from the counts that Parquet keeps, without reading the rows."""
    meta = parquet.read_metadata(out)
    place = [meta.schema.column(number).path for number in range(meta.num_columns)].index("error")
    found = [meta.row_group(number).column(place) for number in range(meta.num_row_groups)]
    return sum(column.num_values - column.statistics.null_count for column in found)
