"""`hynt data stats`: what a graph is made of, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.data.showing import fact_as_json
from hynt.cli.options import GraphArgument
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.graph.knowledge_graph import KnowledgeGraph


def stats(
    graph: GraphArgument,
    outliers: Annotated[bool, typer.Option("--outliers", help="Show the numbers that are probably wrong.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of those.")] = 20,
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Count a graph: entities, relations, facts, qualifiers, and the numbers of each relation."""
    from hynt.graph.statistics import graph_statistics
    from hynt.graph.storage import load_graph

    check_save(save)
    loaded = load_graph(graph)
    result: dict[str, Any] = {
        "graph": graph,
        "name": loaded.name,
        "licence": loaded.manifest.licence,
        **graph_statistics(loaded).to_mapping(loaded),
        "outliers": _outliers(loaded, limit) if outliers else None,
    }
    deliver(result, as_json=json, save=save, text=lambda out: _tell(result, out))


def _outliers(graph: KnowledgeGraph, limit: int) -> dict[str, Any]:
    from hynt.graph.number_summary import find_outliers

    report = find_outliers(graph, limit=limit)
    return {
        "found": report.found,
        "ranges": [found.to_mapping(graph.relations[found.relation]) for found in report.ranges],
        "suspicious": [
            {
                "relation": graph.relations[found.relation].name,
                "label": graph.relation_labels[found.relation],
                "value": found.value,
                "is_tail": found.is_tail,
                "distance": found.distance,
                "fact": fact_as_json(found.fact, graph),
            }
            for found in report.suspicious
        ],
    }


def _tell(result: dict[str, Any], out: Console) -> None:
    from rich import box
    from rich.table import Table

    counts = result["counts"]
    table = Table(title=visible(result["name"]), title_justify="left", box=box.SIMPLE, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for words, *names in _COUNTS:
        table.add_row(words, " / ".join(f"{counts[name]:,}" for name in names))
    out.print(table)
    splits = Table(box=box.SIMPLE_HEAD)
    splits.add_column("split")
    for heading in ("facts", "with qualifiers", "with a number as tail", "qualifiers"):
        splits.add_column(heading, justify="right")
    for name, split in result["splits"].items():
        splits.add_row(name, *(f"{split[key]:,}" for key in ("facts", "with_qualifiers", "number_tails", "qualifiers")))
    out.print(splits)
    histogram = ", ".join(f"{size}: {facts:,}" for size, facts in result["qualifiers_per_fact"].items())
    out.print(f"Facts by how many qualifiers they have: {histogram}.")
    across = {key.replace("_", " "): count for key, count in result["across_splits"].items() if count}
    if across:
        out.print("Facts in two splits: " + ", ".join(f"{key} {count:,}" for key, count in across.items()) + ".")
    for split, seen in result["triplets_seen_in_train"].items():
        if seen["facts"]:
            told = f"{seen['facts']:,} facts of {visible(split)} ({seen['share']:.1%})"
            out.print(f"Train has the triplet of {told}, with the same or other qualifiers.")
    lacking = result["missing_from_train"]
    if any(lacking.values()):
        out.print(f"Train lacks {lacking['entities']:,} entities and {lacking['relations']:,} relations of the others.")
    for leak in result["leakage"]:
        kind = "an inverse" if leak["kind"] == "inverse" else "a near-duplicate"
        out.print(
            f"{visible(leak['rarer'])} is {kind} of {visible(leak['other'])}: {leak['shared']:,} shared pairs of "
            f"{leak['rarer_pairs']:,} and {leak['other_pairs']:,}."
        )
    _tell_numbers(result, out)
    _tell_outliers(result, out)


_COUNTS = (
    ("entities", "entities"),
    ("numbers, as written", "number_literals"),
    ("relations: all / of entities / of numbers", "relations", "entity_relations", "number_relations"),
    ("facts: all / with / without qualifiers", "facts", "facts_with_qualifiers", "facts_without_qualifiers"),
    ("distinct triplets: all / of entities / of numbers", "triplets", "entity_triplets", "number_triplets"),
    ("distinct qualifiers: all / of entities / of numbers", "qualifiers", "entity_qualifiers", "number_qualifiers"),
)


def _tell_numbers(result: dict[str, Any], out: Console) -> None:
    from rich import box
    from rich.table import Table

    from hynt.graph.sentences import format_number, format_quantity
    from hynt.graph.units.conversion import shown as value_shown
    from hynt.graph.units.conversion import shown_difference

    if not result["numbers"]:
        return
    table = Table(title="Numbers by relation", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("relation", overflow="fold")
    table.add_column("unit", overflow="fold")
    for heading in ("frequency", "minimum", "median", "maximum", "mean", "std. deviation"):
        table.add_column(heading, justify="right")
    for found in sorted(result["numbers"], key=lambda found: -found["frequency"]):
        unit = found["unit"] if found["unit"] == "date" else ""
        told = [found["minimum"], found["maximum"], found["mean"], found["quantiles"]["0.5"]]
        *shown, median = (format_quantity(value_shown(value, found["unit"])[0], unit) for value in told)
        deviation_shown, read_in = shown_difference(found["standard_deviation"], found["unit"])
        label = visible(found["label"]) + (" (log)" if found["learned_on"] == "log" else "")
        deviation = format_number(deviation_shown) + (" years" if unit else "")
        table.add_row(
            label, visible(read_in), f"{found['frequency']:,}", shown[0], median, shown[1], shown[2], deviation
        )
    out.print(table)


def _tell_outliers(result: dict[str, Any], out: Console) -> None:
    found = result["outliers"]
    if found is None:
        return
    if found["found"] == 1:
        told = "1 number lies outside the robust range of its relation"
    else:
        told = f"{found['found']:,} numbers lie outside the robust range of their relation"
    out.print(f"{told}. The furthest out:" if found["suspicious"] else f"{told}.")
    for item in found["suspicious"]:
        out.print(f"  {item['distance']:>8,.1f} ×  {visible(item['fact']['text'])}", soft_wrap=True)
