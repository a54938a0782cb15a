"""The options that say how a source becomes a graph, the same for `check` and `import`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from hynt.errors import UsageError
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from hynt.formats.importing import ImportOptions


SourcesArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SOURCE…",
        help="A file, or a folder of files. Further ones join the same graph: the splits of the first that has any are "
        "kept, and all facts of the others go to train.",
    ),
]
FormatOption: TypeAlias = Annotated[
    str,
    typer.Option("--format", "-f", metavar="F", help="The format, if file names and first lines leave it in doubt."),
]
_SPLITS: dict[str, Any] = {"rich_help_panel": "Splits"}
_READING: dict[str, Any] = {"rich_help_panel": "Reading"}
_TABLES: dict[str, Any] = {"rich_help_panel": "Edge lists and RDF"}
_NAMES: dict[str, Any] = {"rich_help_panel": "Names"}


@dataclass(frozen=True)
class SourceOptions:
    """How to read the files, and what to do with the facts once they are read."""

    # fmt: off
    split: Annotated[str, typer.Option(
        "--split", metavar="8:1:1", **_SPLITS,
        help="Make new splits with these shares of train, valid and test, instead of keeping given ones.",
    )] = ""
    split_by: Annotated[str, typer.Option(
        "--split-by", metavar="head,relation", **_SPLITS,
        help="Make new splits; facts that agree in these parts go together, such as a time series.",
    )] = ""
    seed: Annotated[int | None, typer.Option(
        "--seed", metavar="N", min=0, max=LARGEST_SEED, **_SPLITS, help="Draw other splits."
    )] = None
    across_splits: Annotated[Literal["keep", "drop", "error"], typer.Option(
        "--across-splits", **_SPLITS,
        help="What to do with a fact in two given splits; drop takes it out of the later one.",
    )] = "keep"
    remove_leakage: Annotated[bool, typer.Option(
        "--remove-leakage", **_SPLITS, help="Remove relations that give others away: inverses and near-duplicates."
    )] = False
    train_file: Annotated[str, typer.Option(
        "--train-file", metavar="NAME", **_SPLITS,
        help="The file of the folder that holds train, if it has another name: msg.txt of inductive benchmarks.",
    )] = ""
    keep_splits: Annotated[bool, typer.Option(
        "--keep-splits", **_SPLITS, help="Further sources keep the splits they have, instead of joining train."
    )] = False
    units: Annotated[Literal["si", "keep"] | None, typer.Option(
        "--units", show_default=False, **_READING,
        help="Convert quantities to SI, or keep them; as the format has it if not given.",
    )] = None
    unit_of: Annotated[list[str] | None, typer.Option(
        "--unit-of", metavar="RELATION=UNIT", show_default=False, **_READING,
        help="The unit of a relation's numbers, where they do not say it. Repeatable.",
    )] = None
    mixed_relations: Annotated[Literal["error", "split"], typer.Option(
        "--mixed-relations", **_READING, help="A relation with entities and numbers: refuse it, or split it in two."
    )] = "error"
    strict: Annotated[bool, typer.Option(
        "--strict", **_READING, help="Refuse oddities that are otherwise kept and noted."
    )] = False
    outlier_rules: Annotated[Path | None, typer.Option(
        "--outlier-rules", metavar="FILE", **_READING, help="Leave out the facts that this TOML file rules out."
    )] = None
    corrections: Annotated[Path | None, typer.Option(
        "--corrections", metavar="FILE", **_READING,
        help="Remove and replace facts as decided on the page of doubtful facts.",
    )] = None
    numeric: Annotated[list[str] | None, typer.Option(
        "--numeric", metavar="COLUMN,…", show_default=False, **_TABLES,
        help="The relations (in a table also columns) that hold numbers; auto: all whose values are written like them.",
    )] = None
    dates: Annotated[list[str] | None, typer.Option(
        "--dates", metavar="COLUMN,…", show_default=False, **_TABLES,
        help="The relations (in a table also columns) that hold dates; auto: all whose values are written like them.",
    )] = None
    head: Annotated[str, typer.Option(
        "--head", metavar="COLUMN", **_TABLES, help="csv-edges: the column of heads."
    )] = ""
    relation: Annotated[str, typer.Option(
        "--relation", metavar="COLUMN", **_TABLES, help="csv-edges: the column of relations."
    )] = ""
    tail: Annotated[str, typer.Option(
        "--tail", metavar="COLUMN", **_TABLES, help="csv-edges: the column of tails."
    )] = ""
    relation_name: Annotated[str, typer.Option(
        "--relation-name", metavar="NAME", **_TABLES, help="csv-edges: one relation for all rows, instead of a column."
    )] = ""
    wide: Annotated[bool, typer.Option(
        "--wide", **_TABLES, help="csv-edges: a row is an entity (--head), and the other columns are relations."
    )] = False
    qualifier: Annotated[list[str] | None, typer.Option(
        "--qualifier", metavar="COLUMN,…", show_default=False, **_TABLES,
        help="csv-edges, --wide: columns that qualify all facts of their row, such as the year.",
    )] = None
    label: Annotated[str, typer.Option(
        "--label", metavar="COLUMN", **_TABLES,
        help="csv-edges, graph-json: the column or property with the entity's name for people; of a node, `name` and "
        "its like if not given.",
    )] = ""
    date_format: Annotated[str, typer.Option(
        "--date-format", metavar="FORMAT", **_TABLES,
        help="How dates are written, such as %d/%m/%Y, if not as 1922-01-28 or Jan 28, 1922.",
    )] = ""
    number_format: Annotated[str, typer.Option(
        "--number-format", metavar="EXAMPLE", **_TABLES,
        help="How numbers are written, if not as 1234.5: 1,234.5 or 1.234,5.",
    )] = ""
    several: Annotated[list[str] | None, typer.Option(
        "--several", metavar="COLUMN,…", show_default=False, **_TABLES,
        help="csv-edges: columns with several values in a cell, such as all directors of a film.",
    )] = None
    several_by: Annotated[str, typer.Option(
        "--several-by", metavar="CHARACTER", **_TABLES, help="What stands between them; a semicolon if not given."
    )] = ""
    delimiter: Annotated[str, typer.Option(
        "--delimiter", metavar="CHARACTER", **_TABLES,
        help="csv-edges: comma, semicolon, tab, pipe, or the character itself.",
    )] = ""
    string_literals: Annotated[Literal["drop", "keep"], typer.Option(
        "--string-literals", **_TABLES, help="rdf: drop and count text literals, or keep them as entities."
    )] = "drop"
    base: Annotated[str, typer.Option(
        "--base", metavar="ADDRESS", **_TABLES, help="rdf: the base of relative addresses."
    )] = ""
    named_graphs: Annotated[Literal["ignore", "qualifier"], typer.Option(
        "--named-graphs", **_TABLES, help="rdf: read all graphs as one, or make a triple's graph its qualifier."
    )] = "ignore"
    label_language: Annotated[str, typer.Option(
        "--label-language", metavar="LANGUAGE", **_TABLES,
        help="rdf: the language of the rdfs:labels that become names.",
    )] = "en"
    entity_labels: Annotated[Path | None, typer.Option(
        "--entity-labels", metavar="FILE", **_NAMES, help="Names of entities: id TAB name."
    )] = None
    relation_labels: Annotated[Path | None, typer.Option(
        "--relation-labels", metavar="FILE", **_NAMES, help="Names of relations: id TAB name, and TAB what they mean."
    )] = None
    # fmt: on

    def importing(self, **more: Any) -> ImportOptions:
        """The options of an import; `more` are those that only it has."""
        from hynt.front.graphs import import_options

        listed = {
            "numeric": [name for text in self.numeric or () for name in names_in(text, "--numeric")],
            "dates": [name for text in self.dates or () for name in names_in(text, "--dates")],
            "qualifier": [name for text in self.qualifier or () for name in names_in(text, "--qualifier")],
            "several": [name for text in self.several or () for name in names_in(text, "--several")],
            "split_by": names_in(self.split_by, "--split-by"),
            "unit_of": dict(_with_unit(text) for text in self.unit_of or ()),
        }
        return import_options(**{**vars(self), **listed, **more})


def _with_unit(text: str) -> tuple[str, str]:
    relation, _, unit = text.rpartition("=")
    if not relation.strip() or not unit.strip():
        raise UsageError(
            f"{text!r} is not a relation and its unit.", where="--unit-of", advice="Write RELATION=UNIT: height=cm."
        )
    return relation.strip(), unit.strip()


def names_in(text: str, option: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes."""
    if not text:
        return []
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
    if not all(names):
        raise UsageError(f"{text!r} has an empty name.", where=option, advice="Separate names by single commas.")
    return names
