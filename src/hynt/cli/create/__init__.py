"""`hynt create`: a graph from a dump of Wikidata, YAGO3 or Freebase."""

from __future__ import annotations

from typing import Any

from hynt.cli.create import arguments
from hynt.cli.create.telling import print_result, result_mapping
from hynt.cli.interruption import interruptible
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.cli.progress import ReadingProgress
from hynt.errors import UsageError
from hynt.nearest import advice_on

_ONLY = {
    "preferred-only": ("wikidata",), "subclasses": ("wikidata",),
    "redirects": ("wikidata",), "mediators": ("freebase",), "primaries": ("freebase",),
}  # fmt: skip


def create(
    source: arguments.SourceName,
    dump: arguments.DumpPath,
    out: arguments.OutFolder,
    entities: arguments.Entities = None,
    mapping: arguments.Mapping = None,
    instance_of: arguments.InstanceOf = None,
    subclasses: arguments.Subclasses = False,
    everything: arguments.Everything = False,
    redirects: arguments.Redirects = None,
    language: arguments.Language = "en",
    preferred_only: arguments.PreferredOnly = False,
    text: arguments.TextRule = "drop",
    max_qualifiers: arguments.MaxQualifiers = None,
    long_facts: arguments.LongFacts = "shorten",
    mediators: arguments.Mediators = None,
    primaries: arguments.Primaries = None,
    units: arguments.Units = "si",
    unknown_units: arguments.UnknownUnits = "drop",
    other_units: arguments.OtherUnits = "drop",
    keep_leakage: arguments.KeepLeakage = False,
    outlier_rules: arguments.OutlierRules = None,
    mixed_relations: arguments.MixedRelations = "split",
    split: arguments.SplitShares = "8:1:1",
    seed: arguments.Seed = 0,
    engine: arguments.Engine = "duckdb",
    master: arguments.Master = "local[*]",
    workers: arguments.Workers = None,
    memory: arguments.Memory = "1GB",
    work: arguments.Work = None,
    keep_work: arguments.KeepWork = False,
    max_bad_lines: arguments.MaxBadLines = 0.001,
    rejects: arguments.Rejects = None,
    name: arguments.Name = "",
    licence: arguments.Licence = "",
    overwrite: arguments.Overwrite = False,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Make a graph from a dump.

    Stopped builds go on where they were when the same command is given again.
    """
    from hynt.creation.sources import SOURCES

    if source not in SOURCES:
        raise UsageError(f"there is no source {source!r}.", advice=advice_on(source, SOURCES))
    _refuse_foreign(
        source, {"preferred-only": preferred_only,
                 "subclasses": subclasses,
                 "redirects": redirects is not None, "mediators": mediators is not None,
                 "primaries": primaries is not None},
    )  # fmt: skip
    check_save(save)

    from hynt.creation.building import create_graph
    from hynt.creation.options import CreationOptions, EngineOptions, memory_bytes
    from hynt.graph.assembly import AssemblyPolicy
    from hynt.graph.outlier_rules import read_outlier_rules
    from hynt.graph.splitting import SplitRule, parse_shares

    engine_options: dict[str, Any] = {"name": engine, "master": master, "memory_bytes": memory_bytes(memory)}
    if workers is not None:
        engine_options["workers"] = workers
    mixed = _one_of(mixed_relations, "--mixed-relations", "split", "drop")
    options = CreationOptions(
        entities=entities, types=tuple(instance_of or ()), subclasses=subclasses, everything=everything,
        mappings=tuple(mapping or ()),
        redirects=redirects, language=language, text=_one_of(text, "--text", "drop", "keep"),
        preferred_only=preferred_only, mediators=mediators, primaries=primaries,
        units=_one_of(units, "--units", "si", "keep"),
        unknown_units=_one_of(unknown_units, "--unknown-units", "drop", "keep"),
        other_units=_one_of(other_units, "--other-units", "drop", "keep", "split"),
        max_qualifiers=max_qualifiers, long_facts=_one_of(long_facts, "--long-facts", "shorten", "drop"),
        mixed_relations="split" if mixed == "split" else "error", max_bad_lines=max_bad_lines,
        assembly=AssemblyPolicy(
            split=SplitRule(parse_shares(split), seed), remove_leakage=not keep_leakage,
            outlier_rules=None if outlier_rules is None else read_outlier_rules(outlier_rules),
        ),
        engine=EngineOptions(**engine_options),
        work=work, keep_work=keep_work, rejects=rejects, name=name, licence=licence,
    )  # fmt: skip
    with interruptible(), ReadingProgress() as progress:
        result = create_graph(source, dump, out, options, overwrite=overwrite, progress=progress)
    told = result_mapping(result, out)
    deliver(told, as_json=as_json, save=save, text=lambda console: print_result(told, console))


def _one_of(value: str, where: str, *known: str) -> Any:
    if value not in known:
        raise UsageError(f"{value!r} is not a choice here.", where=where, advice=advice_on(value, known))
    return value


def _refuse_foreign(source: str, given: dict[str, bool]) -> None:
    """An option that a source does not know is wrong use, not something to ignore."""
    for option, is_given in given.items():
        if is_given and source not in _ONLY[option]:
            raise UsageError(
                f"--{option} means nothing for {source}.", where=f"--{option}",
                advice=f"It is for {' and '.join(_ONLY[option])}.",
            )  # fmt: skip
