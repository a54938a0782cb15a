"""A graph from a dump of Wikidata, YAGO3 or Freebase in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from hynt.errors import UsageError
from hynt.files import check_new_folder
from hynt.names import advice_on, check_options
from hynt.results import box, pairs

if TYPE_CHECKING:
    from hynt.creation.building import CreationResult
    from hynt.creation.options import CreationOptions
    from hynt.front.jobs import Watching
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
        """Opens the graph that was created."""
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
    source: str,
    dump: AnyPath,
    out: AnyPath,
    *,
    overwrite: bool = False,
    progress: Watching = None,
    **options: Unpack[CreationWords],
) -> CreatedGraph:
    """Makes a graph from a dump of "wikidata", "yago" or "freebase" and saves it in the folder `out`. The same call
    resumes a build that was stopped.

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
    from hynt.front.jobs import watched
    from hynt.interruption import interruptible

    with interruptible(), watched(progress) as shown:
        made = create_graph(source, Path(dump), folder, wanted, overwrite=overwrite, progress=shown)
    return CreatedGraph(folder, made)


class CreationWords(TypedDict, total=False):
    """What becomes of a dump, in plain values: the options of `hynt create`, whose help says what each means."""

    entities: AnyPath | None
    mapping: Iterable[AnyPath] | None
    instance_of: Iterable[str] | None
    subclasses: bool
    everything: bool
    redirects: AnyPath | None
    language: str
    preferred_only: bool
    text: str
    keep_tails: bool
    min_tail_uses: int
    max_qualifiers: int | None
    long_facts: str
    mediators: AnyPath | None
    primaries: AnyPath | None
    units: str
    unknown_units: str
    other_units: str
    keep_leakage: bool
    outlier_rules: AnyPath | None
    mixed_relations: str
    split: str
    seed: int
    engine: str
    master: str
    workers: int | None
    memory: str
    work: AnyPath | None
    keep_work: bool
    max_bad_lines: float
    rejects: AnyPath | None
    name: str
    licence: str


_CHOICES = {
    "text": ("drop", "keep"),
    "units": ("si", "keep"),
    "unknown_units": ("drop", "keep"),
    "other_units": ("drop", "keep", "split"),
    "long_facts": ("shorten", "drop"),
    "mixed_relations": ("split", "drop"),
}
_PATHS = ("entities", "redirects", "mediators", "primaries", "work", "rejects")


def creation_options(**words: Unpack[CreationWords]) -> CreationOptions:
    """The options of a build, checked."""
    from hynt.creation.options import CreationOptions, EngineOptions, memory_bytes
    from hynt.graph.assembly import AssemblyPolicy
    from hynt.graph.outlier_rules import read_outlier_rules
    from hynt.graph.splitting import SplitRule

    given: dict[str, Any] = {"keep_tails": True, **words}
    check_options("a build", given, CreationWords.__annotations__)
    machine = {"name": given.get("engine", "duckdb"), "memory_bytes": memory_bytes(given.get("memory", "1GB"))}
    machine |= {name: given[name] for name in ("master", "workers") if given.get(name) is not None}
    chosen = {name: _one_of(given[name], name, known) for name, known in _CHOICES.items() if name in given}
    if "mixed_relations" in chosen:
        chosen["mixed_relations"] = "split" if chosen["mixed_relations"] == "split" else "error"
    plain = {one.name: given[one.name] for one in fields(CreationOptions) if given.get(one.name) is not None}
    plain |= {name: Path(plain[name]) for name in _PATHS if name in plain} | chosen
    rules = given.get("outlier_rules")
    return CreationOptions(
        **plain
        | {
            "types": tuple(given.get("instance_of") or ()),
            "mappings": tuple(Path(one) for one in given.get("mapping") or ()),
            "assembly": AssemblyPolicy(
                split=SplitRule.of(given.get("split", SplitRule.shares), given.get("seed", 0)),
                remove_leakage=not given.get("keep_leakage", False),
                outlier_rules=None if rules is None else read_outlier_rules(Path(rules)),
            ),
            "engine": EngineOptions(**machine),
        }
    )


def _one_of(value: Any, name: str, known: tuple[Any, ...]) -> Any:
    if value not in known:
        where = f"--{name.replace('_', '-')}"
        raise UsageError(f"{value!r} is not a choice here.", where=where, advice=advice_on(str(value), map(str, known)))
    return value
