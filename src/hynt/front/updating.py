"""A run's graph kept up to date: facts as people write them are fitted to its names, kinds and units, and written to
its journal, all or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hynt.errors import DataError, UsageError

if TYPE_CHECKING:
    from hynt.front.run import Run

Facts: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A file of facts, or facts as tuples."""


def updated(
    run: Run,
    facts: Facts | None,
    remove: Facts | None,
    remove_entities: Sequence[str],
    merge: Sequence[tuple[str, str]],
    corrections: str | os.PathLike[str] | None,
    skip_known: bool,
    format_name: str,
    source: str,
    key: str,
) -> Run:
    """See `Run.update`."""
    from hynt.asking.graph_updates import GivenChange
    from hynt.formats.corrections import read_corrections
    from hynt.models.contract import Part
    from hynt.models.registry import MODELS
    from hynt.runs.journal import Journal

    name = run.saved.manifest["model_name"]
    if Part.OBSERVED_FACTS not in MODELS.get(name).reads:
        raise UsageError(
            f"a run of {name!r} cannot follow its graph: it knows what it was trained on and nothing else.",
            where=str(run.path),
            advice="Train again, or train a model that reads observed facts: --model hynt-inductive.",
        )
    files = [Path(one).name for one in (facts, remove, corrections) if isinstance(one, (str, os.PathLike))]
    decided = None if corrections is None else read_corrections(Path(corrections))
    change = GivenChange(
        chain(_read(facts, format_name), () if decided is None else decided.added()),
        chain(_read(remove, format_name), () if decided is None else decided.removed()),
        remove_entities,
        merge,
        skip_known,
        source or ", ".join(files),
        key,
    )
    written, _ = change.written(run.path, lambda journal, version: journal.graph(run.saved.graph(), version))
    return _opened(run, Journal(run.path).latest() if written is None else written.version)


def _opened(run: Run, version: int) -> Run:
    """The run at a version; weights that are loaded already are not read again."""
    from hynt.front.run import Run

    made = Run(run.path, run._device, run.note, run._kept, version)
    made.__dict__["saved"] = run.saved
    if "loaded" in run.__dict__:
        made.__dict__["trained"] = run.loaded.home or run.loaded
    return made


def _read(given: Facts | None, format_name: str) -> Iterator[Any]:
    """Facts from a file of any format, or as they are."""
    if given is None:
        return
    if not isinstance(given, (str, os.PathLike)):
        yield from given
        return
    from hynt.formats.format import ReadOptions, ReadReport
    from hynt.formats.inference import infer_format
    from hynt.formats.parts import find_parts
    from hynt.formats.registry import get_format

    path, report = Path(given), ReadReport()
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}.", advice="Give a file of facts, or a folder of files.")
    chosen = get_format(format_name) if format_name else infer_format(path)
    for part in find_parts(path, chosen):
        yield from chosen.read(part.path, ReadOptions(), report)
    if report.rejected:
        first = report.problems[0]
        raise DataError(first.what, where=first.where, advice=first.advice)
