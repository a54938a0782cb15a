"""`hynt data list`, `hynt data stats` and `hynt data show`: which graphs and formats there are, what a graph is made of
in numbers, and the facts of one entity, readable and as a picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.data.importing import leak_text, tell_missing
from hynt.cli.options import AsOf, GraphArgument, argument, option
from hynt.cli.output import SavedOutput, print_table
from hynt.errors import UsageError, located
from hynt.names import nearest, plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def list_known(output: SavedOutput) -> None:
    """List the built-in graphs, the formats, and the published graphs that are known by name."""
    from hynt.front.graphs import list_formats, list_graphs, list_published

    result = {"graphs": list_graphs(), "formats": list_formats(), "published": list_published()}
    output.deliver(result, lambda out: _tell_known(result, out))


def _tell_known(result: dict[str, Any], out: Console) -> None:
    graphs = []
    for graph in result["graphs"]:
        splits = [graph["splits"].get(split, 0) for split in ("train", "valid", "test")]
        counts = [graph["facts"], *splits, *(graph[key] for key in ("entities", "relations", "number_relations"))]
        graphs.append((graph["name"], *(f"{count:,}" for count in counts)))
    headings = ("name", "facts", "train", "valid", "test", "entities", "relations", "with numbers")
    print_table(out, headings, graphs, "Built-in graphs", "left", range(1, len(headings)))
    formats = []
    for known in result["formats"]:
        extra = f" (needs hynt[{known['extra']}])" if known["extra"] else ""
        writes = "yes" if known["writes"] else "no"
        formats.append((known["name"], " ".join(known["suffixes"]), "yes", writes, known["summary"] + extra))
    print_table(out, ("name", "files", "reads", "writes", "what it is"), formats, "Formats", "left", ())
    named = ", ".join(graph["name"] for graph in result["published"])
    out.print(f"Published graphs, for hynt data import --published NAME --from FOLDER: {named}.")
    out.print("Files may be compressed with gzip, bzip2 or zstd.")


def stats(
    graph: GraphArgument,
    outliers: bool = option(False, "Show the numbers that are probably wrong."),
    limit: int = option(20, "How many of those.", min=1),
    as_of: AsOf = None,
    *,
    output: SavedOutput,
) -> None:
    """Count what a graph holds: entities, relations, facts, qualifiers, and the numbers of each relation."""
    from hynt.front.graphs import read_graph

    loaded = read_graph(graph, as_of)
    result: dict[str, Any] = {
        "graph": graph,
        "name": loaded.name,
        "licence": loaded.manifest.licence,
        **loaded.statistics().to_mapping(loaded),
        "outliers": loaded.outliers(limit).to_dict() if outliers else None,
    }
    output.deliver(result, lambda out: _tell_counts(result, out))


def _tell_counts(result: dict[str, Any], out: Console) -> None:
    from rich import box
    from rich.table import Table

    counts = result["counts"]
    table = Table(title=visible(result["name"]), title_justify="left", box=box.SIMPLE, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for words, *names in _COUNTS:
        table.add_row(words, " / ".join(f"{counts[name]:,}" for name in names))
    out.print(table)
    keys = ("facts", "with_qualifiers", "number_tails", "qualifiers")
    splits = [(name, *(f"{split[key]:,}" for key in keys)) for name, split in result["splits"].items()]
    headings = ("split", "facts", "with qualifiers", "with a number as tail", "qualifiers")
    print_table(out, headings, splits, numbers=range(1, len(headings)))
    histogram = ", ".join(f"{size}: {facts:,}" for size, facts in result["qualifiers_per_fact"].items())
    out.print(f"Facts by how many qualifiers they have: {histogram}.")
    across = {key.replace("_", " "): count for key, count in result["across_splits"].items() if count}
    if across:
        out.print("Facts in two splits: " + ", ".join(f"{key} {count:,}" for key, count in across.items()) + ".")
    for split, seen in result["triplets_seen_in_train"].items():
        if seen["facts"]:
            told = f"{seen['facts']:,} facts of {visible(split)} ({seen['share']:.1%})"
            out.print(f"Train has the triplet of {told}, with the same or other qualifiers.")
    tell_missing(result["missing_from_train"], out)
    for leak in result["leakage"]:
        pair = (leak["rarer"], leak["other"], leak["rarer_pairs"], leak["other_pairs"])
        out.print(f"{leak_text(leak, *pair)}.")
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
    from hynt.graph.sentences import format_number, format_quantity
    from hynt.graph.units.conversion import in_display_unit, shown_difference

    if not result["numbers"]:
        return
    rows = []
    marks = {"log": " (log)", "log unless worse": " (log?)", "linear": ""}
    for found in sorted(result["numbers"], key=lambda found: -found["frequency"]):
        unit = found["unit"] if found["unit"] == "date" else ""
        values = (found["minimum"], found["maximum"], found["mean"], found["quantiles"]["0.5"])
        told = [in_display_unit(value, found["unit"])[0] for value in values]
        # A number of four digits without a unit may be a year, and has no comma.
        may_be_year = found["unit"] in ("", "1", "date")
        *shown, median = (format_quantity(one, unit) if may_be_year else format_number(one) for one in told)
        deviation_shown, read_in = shown_difference(found["standard_deviation"], found["unit"])
        deviation = format_number(deviation_shown) + (" years" if unit else "")
        cells = (f"{found['frequency']:,}", shown[0], median, shown[1], shown[2], deviation)
        rows.append((found["label"] + marks[found["learned_on"]], read_in, *cells))
    headings = ("relation", "unit", "frequency", "minimum", "median", "maximum", "mean", "std. deviation")
    print_table(out, headings, rows, "Numbers by relation", "left", range(2, len(headings)))
    if any(found["learned_on"] == "log unless worse" for found in result["numbers"]):
        out.print("(log?): learned on a log scale, unless training finds that validation errors get worse", style="dim")


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
        out.print(f"  {item['distance']:>8,.1f} ×  {visible(item['fact']['text'])}")


_HEADINGS = {"head": "", "tail": "as the tail of", "value": "as the value of a qualifier of"}


def show(
    graph: GraphArgument,
    name: str = argument(..., "The id or name of an entity, or else of a relation.", metavar="NAME"),
    limit: int = option(20, "How many facts to show, spread over relations.", min=1),
    position: Literal["head", "tail", "value"] | None = option(
        None, "Only facts where it stands here; also settles a name that several share."
    ),
    picture: Path | None = option(
        None, "Draw its neighbourhood: .png, .svg or .pdf.", "--out", "--picture", "-o", metavar="FILE"
    ),
    as_of: AsOf = None,
    *,
    output: SavedOutput,
) -> None:
    """Show the facts of an entity, with names, units and dates, or what a relation means and how it is used."""
    from hynt.front.graphs import read_graph
    from hynt.front.publishing import check_drawing, draw

    check_drawing(pictures := [] if picture is None else [picture], of_facts=True, argument="--out")
    loaded = read_graph(graph, as_of)
    if not loaded.names.has_entity(name) and loaded.names.relations_called(name):
        if position or picture:
            told = (
                f"{name!r} is a relation, and {'--position' if position else '--out'} is about the facts of an entity."
            )
            raise UsageError(told, where="NAME", advice="Leave the option out, or name an entity.")
        with located("NAME"):
            about = loaded.relation_in_use(name).to_dict()
        output.deliver({"graph": graph, **about}, lambda out: _tell_relation(about, out))
        return
    with located("NAME"):
        try:
            found = loaded.facts_of(name, limit=limit, position=position)
        except UsageError as problem:
            near = None if loaded.names.has_entity(name) else nearest(name, loaded.relation_labels)
            advice = problem.advice + (f" The nearest relation is {near!r}." if near else "")
            raise UsageError(problem.what, advice=advice) from None
    result = {"graph": graph, **found.to_dict(), "picture": str(picture) if picture else None}
    draw(found, *pictures)
    output.deliver(result, lambda out: _tell(result, out))


def _tell_relation(result: dict[str, Any], out: Console) -> None:
    from hynt.graph.sentences import format_quantity, unit_in_words
    from hynt.graph.units.conversion import with_display

    relation, numbers = result["relation"], result["numbers"]
    own = f" ({visible(relation['id'])})" if relation["id"] != relation["name"] else ""
    out.print(f"{visible(relation['name'])}{own}", style="bold")
    if relation["description"]:
        out.print(visible(relation["description"]))
    unit = with_display(relation["unit"], relation["display_unit"])
    named = unit_in_words(unit) if unit not in ("", "1", "date") else ""
    held = "entities" if relation["kind"] == "entity" else "dates" if unit == "date" else "numbers"
    counted = f"{plural(relation['facts'], 'fact')} of {plural(relation['heads'], 'head')}"
    uses = [counted] if relation["facts"] else []
    uses += [f"in {plural(relation['qualifiers'], 'qualifier')}"] if relation["qualifiers"] else []
    named = f" {'' if named.startswith('per ') else 'in '}{visible(named)}" if named else ""
    out.print(f"Holds {held}{named}: {', '.join(uses)}.")
    if numbers:
        low, half, high = (
            format_quantity(one, unit) for one in (numbers["minimum"], numbers["quantiles"]["0.5"], numbers["maximum"])
        )
        out.print(f"From {low} to {high}; half of them lie below {half}.")
    if result["qualifies"]:
        out.print(f"Says more of facts with: {', '.join(visible(one['name']) for one in result['qualifies'])}.")
    values = "Commonest tails" if relation["facts"] else "Commonest values"
    for heading, listed in ((values, "commonest_tails"), ("Usual qualifiers", "usual_qualifiers")):
        told = [f"{visible(one['name'])} ({one['share']:.0%})" for one in result[listed]]
        if told:
            out.print(f"{heading}: {', '.join(told)}.")
    if result["examples"]:
        out.print("For example:", style="dim")
        for text in result["examples"]:
            out.print(f"  {visible(text)}")


def _tell(result: dict[str, Any], out: Console) -> None:
    entity = result["entity"]
    about = [part for part in (entity["id"] if entity["id"] != entity["label"] else "", entity["type"]) if part]
    out.print(visible(entity["label"]) + (f" ({visible(', '.join(about))})" if about else ""), style="bold")
    if not result["facts"]:
        out.print("No facts there.")
    for position, heading in _HEADINGS.items():
        facts = [fact for fact in result["facts"] if fact["position"] == position]
        if facts and heading:
            out.print(f"{heading}:", style="dim")
        for fact in facts:
            out.print(f"  {visible(fact['text'])}")
    if result["left_out"]:
        total = sum(result["counts"].values())
        out.print(f"… and {result['left_out']:,} more facts: --limit {total} shows all.", style="dim")
    if result["picture"]:
        out.print(f"Picture in {visible(result['picture'])}")
