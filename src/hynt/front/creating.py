"""A graph from a dump of Wikidata, YAGO3 or Freebase in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.files import check_new_folder
from hynt.names import advice_on
from hynt.notebook import box, pairs

if TYPE_CHECKING:
    from hynt.creation.building import CreationResult
    from hynt.creation.options import CreationOptions
    from hynt.front.watching import Watching
    from hynt.graph.knowledge_graph import KnowledgeGraph

AnyPath = str | os.PathLike[str]
_ONLY = {
    "preferred_only": "wikidata",
    "subclasses": "wikidata",
    "redirects": "wikidata",
    "mediators": "freebase",
    "primaries": "freebase",
}
"""Options that mean something for one kind of dump alone."""


@dataclass(frozen=True, repr=False)
class CreatedGraph:
    """A graph that was made from a dump. It may be larger than memory: `read` loads it."""

    folder: Path
    result: CreationResult

    def read(self) -> KnowledgeGraph:
        """The graph."""
        from hynt.graph.storage import load_graph

        return load_graph(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """What was read, kept and dropped, as plain values for JSON."""
        return {
            "graph": str(self.folder),
            "counts": dict(self.result.manifest.counts),
            **self.result.manifest.importing,
            "rejected_lines": self.result.rejected,
            "rejects": None if self.result.rejects is None else str(self.result.rejects),
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.result.manifest.counts.items())
        return f"<created graph in {self.folder}: {counts}>"

    def _repr_html_(self) -> str:
        counts = [(name, f"{count:,}") for name, count in self.result.manifest.counts.items()]
        return box(f"created graph in {self.folder}", pairs(counts))


def create(
    source: str, dump: AnyPath, out: AnyPath, *, overwrite: bool = False, progress: Watching = None, **options: Any
) -> CreatedGraph:
    """Makes a graph from a dump of "wikidata", "yago" or "freebase" and saves it in the folder `out`. A build that was
    stopped goes on when the same call is made again.

    The options are those of `hynt create`: entities, mapping, instance_of, subclasses, everything, redirects, language,
    preferred_only, text, max_qualifiers, long_facts, mediators, primaries, units, unknown_units, other_units,
    keep_leakage, outlier_rules, mixed_relations, split, seed, engine, master, workers, memory, work, keep_work,
    max_bad_lines, rejects, name, licence.

    >>> made = hynt.create("wikidata", "dump.json", "from-dump", everything=True, workers=1)
    >>> made.read().name
    'from-dump'
    """
    from hynt.creation.sources.source import SOURCES

    if source not in SOURCES:
        raise UsageError(f"there is no source {source!r}.", advice=advice_on(source, SOURCES))
    for name, owner in _ONLY.items():
        if options.get(name) and source != owner:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} means nothing for {source}.", where=option, advice=f"It is for {owner}.")
    folder = Path(out)
    check_new_folder(folder, "--out")
    wanted = creation_options(**options)

    from hynt.creation.building import create_graph
    from hynt.front.watching import watched
    from hynt.interruption import interruptible

    with interruptible(), watched(progress) as shown:
        made = create_graph(source, Path(dump), folder, wanted, overwrite=overwrite, progress=shown)
    return CreatedGraph(folder, made)


def creation_options(
    *,
    entities: AnyPath | None = None,
    mapping: Iterable[AnyPath] | None = None,
    instance_of: Iterable[str] | None = None,
    subclasses: bool = False,
    everything: bool = False,
    redirects: AnyPath | None = None,
    language: str = "en",
    preferred_only: bool = False,
    text: str = "drop",
    max_qualifiers: int | None = None,
    long_facts: str = "shorten",
    mediators: AnyPath | None = None,
    primaries: AnyPath | None = None,
    units: str = "si",
    unknown_units: str = "drop",
    other_units: str = "drop",
    keep_leakage: bool = False,
    outlier_rules: AnyPath | None = None,
    mixed_relations: str = "split",
    split: str = "8:1:1",
    seed: int = 0,
    engine: str = "duckdb",
    master: str = "local[*]",
    workers: int | None = None,
    memory: str = "1GB",
    work: AnyPath | None = None,
    keep_work: bool = False,
    max_bad_lines: float = 0.001,
    rejects: AnyPath | None = None,
    name: str = "",
    licence: str = "",
) -> CreationOptions:
    """What becomes of a dump, from plain values."""
    from hynt.creation.options import CreationOptions, EngineOptions, memory_bytes
    from hynt.graph.assembly import AssemblyPolicy
    from hynt.graph.outlier_rules import read_outlier_rules
    from hynt.graph.splitting import SplitRule, parse_shares

    machine: dict[str, Any] = {"name": engine, "master": master, "memory_bytes": memory_bytes(memory)}
    if workers is not None:
        machine["workers"] = workers
    mixed = _one_of(mixed_relations, "--mixed-relations", "split", "drop")
    return CreationOptions(
        entities=_path(entities),
        types=tuple(instance_of or ()),
        subclasses=subclasses,
        everything=everything,
        mappings=tuple(Path(one) for one in mapping or ()),
        redirects=_path(redirects),
        language=language,
        text=_one_of(text, "--text", "drop", "keep"),
        preferred_only=preferred_only,
        mediators=_path(mediators),
        primaries=_path(primaries),
        units=_one_of(units, "--units", "si", "keep"),
        unknown_units=_one_of(unknown_units, "--unknown-units", "drop", "keep"),
        other_units=_one_of(other_units, "--other-units", "drop", "keep", "split"),
        max_qualifiers=max_qualifiers,
        long_facts=_one_of(long_facts, "--long-facts", "shorten", "drop"),
        mixed_relations="split" if mixed == "split" else "error",
        max_bad_lines=max_bad_lines,
        assembly=AssemblyPolicy(
            split=SplitRule(parse_shares(split), seed),
            remove_leakage=not keep_leakage,
            outlier_rules=None if outlier_rules is None else read_outlier_rules(Path(outlier_rules)),
        ),
        engine=EngineOptions(**machine),
        work=_path(work),
        keep_work=keep_work,
        rejects=_path(rejects),
        name=name,
        licence=licence,
    )


def _path(given: AnyPath | None) -> Path | None:
    return None if given is None else Path(given)


def _one_of(value: str, where: str, *known: str) -> Any:
    if value not in known:
        raise UsageError(f"{value!r} is not a choice here.", where=where, advice=advice_on(value, known))
    return value
