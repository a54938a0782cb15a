"""What goes with a given-away run for its readers: a page made from the run itself, which says what it is, how it was
made and how good it is; and its graph described as a data set, in the JSON-LD of Croissant 1.0, by which other programs
find and load it.

Names come from data, so everything is quoted: in the header as JSON strings, which YAML reads too, and in the text
with all that Markdown and HTML would obey taken out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.errors import DataError, UsageError
from hynt.files import RESTORE, hashes
from hynt.graph.knowledge_graph import Manifest, read_manifest
from hynt.markup import shown
from hynt.names import plural
from hynt.runs import CONFIG
from hynt.runs.journal import Version
from hynt.runs.place import read_record
from hynt.runs.run_folder import RunFolder

HUB_LICENCES = (
    "apache-2.0",
    "bsd-3-clause",
    "cc0-1.0",
    "cc-by-3.0",
    "cc-by-4.0",
    "cc-by-sa-3.0",
    "cc-by-sa-4.0",
    "cc-by-nc-4.0",
    "cdla-permissive-2.0",
    "gpl-3.0",
    "mit",
    "odbl",
    "odc-by",
)
"""Licences that the hub knows by these names; any other is written out."""

_TASKS = {"link": "entities", "relation": "relations", "number": "numbers"}
_SHOWN = ("mrr", "hits@1", "hits@3", "hits@10", "rmse", "mae")


@dataclass(frozen=True)
class CardFacts:
    """What a model card is written from."""

    run: RunFolder
    graph: Manifest | None  # None: the graph is not given away with the run
    validation: Mapping[str, Any]  # metrics by task and scope, of the weights that are given away; empty: none
    evaluation: Mapping[str, Any] | None = None  # what `hynt evaluate --save` wrote
    licence: str = ""
    versions: Sequence[Version] = ()  # the updates of its graph that are given away with it
    follows_its_graph: bool = False  # reads observed facts, so that it knows entities that training did not
    settings: str = field(default="", repr=False)


def card_facts(
    run: RunFolder, evaluation: Path | None, licence: str, versions: Sequence[Version] = (), *, follows_its_graph: bool
) -> CardFacts:
    """Read from a run, and from an evaluation of it if one is given."""
    folder = run.path / run.manifest["graph"]["path"]
    embedded = run.manifest["graph"]["path"] == "graph"
    graph = read_manifest(folder) if embedded else None
    settings = run.checked(CONFIG).read_text(encoding="utf-8")
    found = None if evaluation is None else _evaluation(evaluation, run)
    licence = licence or (graph.licence if graph else "")
    return CardFacts(run, graph, _validation(run), found, licence, versions, follows_its_graph, settings)


def _validation(run: RunFolder) -> Mapping[str, Any]:
    epoch = run.manifest.get("training", {}).get("weights_of_epoch")
    lines = read_record(run.metrics)
    found = [line["validation"] for line in lines if "validation" in line and line.get("epoch") == epoch]
    try:
        _rows(found[-1] if found else {})
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise DataError("the training record is damaged.", where=str(run.metrics), advice=RESTORE) from None
    return found[-1] if found else {}


def _evaluation(path: Path, run: RunFolder) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        protocol = content["protocol"]
        said = (protocol["graph"], protocol["model"], protocol["seed"], protocol["epoch"])
        _rows(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        advice = "Make one with: hynt evaluate RUN --save FILE."
        raise UsageError("this is not an evaluation.", where=str(path), advice=advice) from None
    manifest = run.manifest
    mine = (
        manifest["graph"]["name"],
        manifest["model_name"],
        run.settings().seed,
        manifest["training"]["weights_of_epoch"],
    )
    if said != mine:
        raise UsageError(
            f"the evaluation is of another run: graph, model, seed and epoch are {said}, not {mine}.",
            where=str(path),
            advice="Make one of this run: hynt evaluate RUN --json --save FILE.",
        )
    return dict(content)


def card_text(facts: CardFacts) -> str:
    """The model card in Markdown, with the header that the hub reads."""
    return (
        "\n".join([*_header(facts), *_what(facts), *_numbers(facts), *_limits(facts), *_graph(facts), *_made(facts)])
        + "\n"
    )


def _header(facts: CardFacts) -> list[str]:
    licence = facts.licence.strip().lower()
    known = licence in HUB_LICENCES
    lines = ["---", f"license: {licence if known else 'other'}"]
    if not known:
        lines.append(f"license_name: {_quoted(facts.licence.strip() or 'not stated')}")
    lines += [
        "library_name: hynt",
        "pipeline_tag: graph-ml",
        "tags:",
        *(f"- {tag}" for tag in ("hynt", "knowledge-graph", "link-prediction", "numeric-literals", "qualifiers")),
    ]
    metrics = [
        f"    - type: {metric}\n      name: {_quoted(f'{task}.{scope}.{metric}, {split}')}\n      value: {value!r}"
        for split, found in _splits(facts)
        for task, scope, metric, value in _rows(found)
    ]
    if metrics:
        lines += [
            "model-index:",
            f"- name: {_quoted(facts.run.manifest['model_name'])}",
            "  results:",
            "  - task:",
            "      type: graph-ml",
            "    dataset:",
            f"      name: {_quoted(_graph_name(facts))}",
            f"      type: {_quoted(_graph_name(facts))}",
            "    metrics:",
            *metrics,
        ]
    return [*lines, "---", ""]


def _what(facts: CardFacts) -> list[str]:
    model, name = facts.run.manifest["model_name"], plain(_graph_name(facts))
    return [
        f"# {plain(model)} on {name}",
        "",
        "A model of a knowledge graph whose facts carry qualifiers and numbers, trained with",
        f"hynt {plain(facts.run.manifest['hynt'])}. It fills in what is missing in a fact: an entity, a relation or a "
        "number.",
        "",
        "```console",
        "$ pip install hynt",
        "$ hynt pull SOURCE RUN",
        "$ hynt predict RUN --help",
        "```",
        "",
        "`hynt pull` checks every file against its hash before the run appears. Weights are safetensors; nothing in",
        "this repository is run as code.",
        "",
    ]


def _numbers(facts: CardFacts) -> list[str]:
    lines = ["## How good it is", ""]
    for split, found in _splits(facts):
        lines += [f"On the split {plain(split)}:", "", "| asked for | scope | metric | value |", "|---|---|---|---|"]
        lines += [
            f"| {_TASKS[task]} | {scope} | {metric} | {value:.4f} |" for task, scope, metric, value in _rows(found)
        ]
        lines += ["", *_protocol(found.get("protocol", {}), facts.run.settings().validation.facts), ""]
    if len(lines) == 2:
        lines += ["It was not validated.", ""]
    reads = ", ".join(f"{split} {facts.run.reads(split)} times" for split in ("valid", "test"))
    return [*lines, f"Readings of held-out splits by evaluations of this run: {reads}.", ""]


def _protocol(protocol: Mapping[str, Any], sampled: int | None) -> list[str]:
    if not protocol:
        which = "every fact" if sampled is None else f"{sampled:,} facts, drawn once,"
        return [
            f"Every component of {which} of the validation split was hidden in turn. Ranks are filtered by the known "
            "answers of all splits, ties count half, numbers are on the min–max scale of their relation. The epoch was "
            "chosen by this split, so these numbers flatter."
        ]
    shown = "; ".join(
        f"{plain(name)}: {plain(json.dumps(value, ensure_ascii=False))}" for name, value in protocol.items()
    )
    return [f"Protocol: {shown}."]


def _limits(facts: CardFacts) -> list[str]:
    """What the figures do not promise, as far as the run itself says so."""
    settings = facts.run.settings()
    limits = [
        "Answers are guesses from the graph's own facts. What the graph has wrong, or lacks for a reason, they repeat.",
        "Probabilities and intervals hold for questions like those of the validation split, not for others.",
    ]
    if settings.train_on == "train+valid":
        limits[1] = "It was trained on the validation split too, so nothing is calibrated and numbers have no interval."
    if not facts.follows_its_graph:
        limits.append("It knows the entities and relations of its training facts alone; new ones need new training.")
    if settings.scale_on == "all-splits":
        limits.append("Numbers were scaled on all splits, the test split among them.")
    if facts.evaluation is None:
        limits.append("No figures of the test split were given with it.")
    return ["## Limits", "", *(f"- {limit}" for limit in limits), ""]


def _graph(facts: CardFacts) -> list[str]:
    lines = ["## The graph", ""]
    if facts.graph is None:
        return [
            *lines,
            f"{plain(_graph_name(facts))} is too large to be part of the run. To ask the run, put it at "
            f"{plain(facts.run.manifest['graph']['path'])}, seen from the run's folder; it is checked by content.",
            "",
            *_updates(facts),
        ]
    counts = ", ".join(f"{count:,} {plain(name.replace('_', ' '))}" for name, count in facts.graph.counts.items())
    return [
        *lines,
        f"{plain(_graph_name(facts))}: {counts}. It is part of this repository, in `graph/`; `croissant.json`",
        "describes its files and columns to other programs.",
        "",
        f"- licence: {plain(facts.graph.licence) or 'not stated'}",
        f"- source: {plain(facts.graph.source) or 'not stated'}",
        "",
        *_updates(facts),
    ]


def _updates(facts: CardFacts) -> list[str]:
    """What has become of the graph since training, where that is given away too."""
    if not facts.versions:
        return []
    added, removed = (sum(getattr(one, name) for one in facts.versions) for name in ("added", "removed"))
    return [
        f"{plural(len(facts.versions), 'update')} since training added {plural(added, 'fact')} and took away "
        f"{removed:,}. The run answers with them; they are in `updates/`, and `hynt update RUN --log` lists them. "
        "Training and its validation did not have them.",
        "",
    ]


def _made(facts: CardFacts) -> list[str]:
    training = facts.run.manifest.get("training", {})
    fence = "`" * max(3, _longest_fence(facts.settings) + 1)
    return [
        "## How it was made",
        "",
        f"Trained for {training.get('seconds', 0):,.0f} s; the weights are those of epoch "
        f"{training.get('weights_of_epoch', 0)}. All settings, as in `config.toml`:",
        "",
        f"{fence}toml",
        facts.settings.rstrip("\n"),
        fence,
    ]


def _splits(facts: CardFacts) -> list[tuple[str, Mapping[str, Any]]]:
    found = [("valid", facts.validation)] if facts.validation else []
    if facts.evaluation is not None:
        found.append((str(facts.evaluation["protocol"].get("split", "")), facts.evaluation))
    return found


def _rows(found: Mapping[str, Any]) -> list[tuple[str, str, str, float]]:
    rows = []
    for task in _TASKS:
        for scope in ("triplet", "all"):
            metrics = found.get(task, {}).get(scope) or {}
            rows += [
                (task, scope, metric, float(metrics[metric])) for metric in _SHOWN if metrics.get(metric) is not None
            ]
    return rows


def _graph_name(facts: CardFacts) -> str:
    return str(facts.run.manifest["graph"]["name"]) or "a graph without a name"


def _quoted(text: str) -> str:
    return json.dumps(text)


def plain(text: str) -> str:
    """Text from data as plain words: one line, with nothing left that Markdown or HTML would act on."""
    line = shown(" ".join(str(text).split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{mark}" if mark in "\\`*_[]|#!" else mark for mark in line)


def _longest_fence(text: str) -> int:
    longest = run = 0
    for mark in text:
        run = run + 1 if mark == "`" else 0
        longest = max(longest, run)
    return longest


CROISSANT = "croissant.json"
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "recordSet": "cr:recordSet",
    "repeated": "cr:repeated",
    "sc": "https://schema.org/",
    "source": "cr:source",
    "subField": "cr:subField",
}
MEANINGS = {
    "head": "The entity that the fact is about.",
    "relation": "What the fact, or the qualifier, says.",
    "tail_entity": "The entity at the end of the fact; null where it is a number.",
    "tail_number": "The number at the end of the fact, in the relation's unit; null where it is an entity.",
    "tail_literal": "The number as its source wrote it.",
    "qualifiers": "What else the fact says: pairs of a relation and an entity or a number.",
}


def croissant_text(manifest: Manifest, folder: Path, inside: str = "") -> str:
    """The description of a graph whose Parquet files lie in the folder `inside` of what is given away."""
    words = [f"{count:,} {name.replace('_', ' ')}" for name, count in manifest.counts.items()]
    name = manifest.name or "a graph without a name"
    files = {path.name: path for path in sorted((folder / inside).glob("*.parquet"))}
    digests = hashes(folder / inside, files)
    fingerprint = hashlib.sha256("".join(digests.values()).encode()).hexdigest()
    described = {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"Facts that carry qualifiers and numbers: {', '.join(words) or 'not counted'}.",
        "license": manifest.licence or "not stated",
        "url": f"urn:hynt:graph:{fingerprint}",
        "creator": {"@type": "sc:Organization", "name": manifest.source or "not stated"},
        "datePublished": datetime.now(UTC).date().isoformat(),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": each,
                "name": each,
                "contentUrl": f"{inside}/{each}" if inside else each,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/vnd.apache.parquet",
                "sha256": digests[each],
            }
            for each, path in files.items()
        ],
        "recordSet": [_records(each, parquet.read_schema(path)) for each, path in files.items()],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _records(file: str, schema: pa.Schema) -> dict[str, Any]:
    name = file.removesuffix(".parquet")
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": [_field(file, name, one) for one in schema]}


def _field(file: str, above: str, one: pa.Field) -> dict[str, Any]:
    """A column; of a list of structures, one that is repeated and has parts."""
    identity = f"{above}/{one.name}"
    found: dict[str, Any] = {"@type": "cr:Field", "@id": identity, "name": identity}
    if one.name in MEANINGS:
        found["description"] = MEANINGS[one.name]
    kind = one.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        found["repeated"], kind = True, kind.value_type
    if pa.types.is_struct(kind):
        found["subField"] = [_field(file, identity, part) for part in kind]
    elif pa.types.is_floating(kind):
        found["dataType"] = "sc:Float"
    elif pa.types.is_integer(kind):
        found["dataType"] = "sc:Integer"
    else:
        found["dataType"] = "sc:Boolean" if pa.types.is_boolean(kind) else "sc:Text"
    column = identity.partition("/")[2].replace("/", ".")
    found["source"] = {"fileObject": {"@id": file}, "extract": {"column": column}}
    return found
