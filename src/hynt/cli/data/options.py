"""The options that say how a source becomes a graph, the same for `check` and `import`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from hynt.cli.options import option
from hynt.errors import UsageError
from hynt.runs import LARGEST_SEED

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
READING: dict[str, Any] = {"rich_help_panel": "Reading"}
_TABLES: dict[str, Any] = {"rich_help_panel": "Edge lists and RDF"}
_NAMES: dict[str, Any] = {"rich_help_panel": "Names"}


@dataclass(frozen=True)
class SourceOptions:
    """How to read the files, and what to do with the facts once they are read."""

    split: str = option(
        "",
        "Make new splits with these shares of train, valid and test, instead of keeping given ones.",
        metavar="8:1:1",
        **_SPLITS,
    )
    split_by: str = option(
        "",
        "Make new splits; facts that agree in these parts go together, such as a time series.",
        metavar="head,relation",
        **_SPLITS,
    )
    seed: int | None = option(None, "Draw other splits.", metavar="N", min=0, max=LARGEST_SEED, **_SPLITS)
    across_splits: Literal["keep", "drop", "error"] = option(
        "keep", "What to do with a fact in two given splits; drop takes it out of the later one.", **_SPLITS
    )
    remove_leakage: bool = option(
        False, "Remove relations that give others away: inverses and near-duplicates.", **_SPLITS
    )
    train_file: str = option(
        "",
        "The file of the folder that holds train, if it has another name: msg.txt of inductive benchmarks.",
        metavar="NAME",
        **_SPLITS,
    )
    keep_splits: bool = option(False, "Further sources keep the splits they have, instead of joining train.", **_SPLITS)
    units: Literal["si", "keep"] | None = option(
        None,
        "Convert quantities to SI, or keep them; as the format has it if not given.",
        show_default=False,
        **READING,
    )
    unit_of: list[str] | None = option(
        None,
        "The unit of a relation's numbers, where they do not say it. Repeatable.",
        metavar="RELATION=UNIT",
        show_default=False,
        **READING,
    )
    mixed_relations: Literal["error", "split"] = option(
        "error", "A relation with entities and numbers: refuse it, or split it in two.", **READING
    )
    strict: bool = option(False, "Refuse oddities that are otherwise kept and noted.", **READING)
    outlier_rules: Path | None = option(
        None, "Leave out the facts that this TOML file rules out.", metavar="FILE", **READING
    )
    corrections: Path | None = option(
        None, "Remove and replace facts as decided on the page of doubtful facts.", metavar="FILE", **READING
    )
    numeric: list[str] | None = option(
        None,
        "The relations (in a table also columns) that hold numbers; auto: all whose values are written like them.",
        metavar="COLUMN,…",
        show_default=False,
        **_TABLES,
    )
    dates: list[str] | None = option(
        None,
        "The relations (in a table also columns) that hold dates; auto: all whose values are written like them.",
        metavar="COLUMN,…",
        show_default=False,
        **_TABLES,
    )
    head: str = option("", "csv-edges: the column of heads.", metavar="COLUMN", **_TABLES)
    relation: str = option("", "csv-edges: the column of relations.", metavar="COLUMN", **_TABLES)
    tail: str = option("", "csv-edges: the column of tails.", metavar="COLUMN", **_TABLES)
    relation_name: str = option(
        "", "csv-edges: one relation for all rows, instead of a column.", metavar="NAME", **_TABLES
    )
    wide: bool = option(
        False, "csv-edges: a row is an entity (--head), and the other columns are relations.", **_TABLES
    )
    qualifier: list[str] | None = option(
        None,
        "csv-edges, --wide: columns that qualify all facts of their row, such as the year.",
        metavar="COLUMN,…",
        show_default=False,
        **_TABLES,
    )
    label: str = option(
        "",
        "csv-edges, graph-json: the column or property with the entity's name for people; of a node, `name` and "
        "its like if not given.",
        metavar="COLUMN",
        **_TABLES,
    )
    date_format: str = option(
        "",
        "How dates are written, such as %d/%m/%Y, if not as 1922-01-28 or Jan 28, 1922.",
        metavar="FORMAT",
        **_TABLES,
    )
    number_format: str = option(
        "", "How numbers are written, if not as 1234.5: 1,234.5 or 1.234,5.", metavar="EXAMPLE", **_TABLES
    )
    several: list[str] | None = option(
        None,
        "csv-edges: columns with several values in a cell, such as all directors of a film.",
        metavar="COLUMN,…",
        show_default=False,
        **_TABLES,
    )
    several_by: str = option("", "What stands between them; a semicolon if not given.", metavar="CHARACTER", **_TABLES)
    delimiter: str = option(
        "", "csv-edges: comma, semicolon, tab, pipe, or the character itself.", metavar="CHARACTER", **_TABLES
    )
    string_literals: Literal["drop", "keep"] = option(
        "drop", "rdf: drop and count text literals, or keep them as entities.", **_TABLES
    )
    base: str = option("", "rdf: the base of relative addresses.", metavar="ADDRESS", **_TABLES)
    named_graphs: Literal["ignore", "qualifier"] = option(
        "ignore", "rdf: read all graphs as one, or make a triple's graph its qualifier.", **_TABLES
    )
    label_language: str = option(
        "en", "rdf: the language of the rdfs:labels that become names.", metavar="LANGUAGE", **_TABLES
    )
    entity_labels: Path | None = option(None, "Names of entities: id TAB name.", metavar="FILE", **_NAMES)
    relation_labels: Path | None = option(
        None, "Names of relations: id TAB name, and TAB what they mean.", metavar="FILE", **_NAMES
    )

    def words(self) -> dict[str, Any]:
        """The same as options of `hynt.import_graph`."""
        listed: dict[str, Any] = {
            option: [name for text in vars(self)[option] or () for name in names_in(text, f"--{option}")]
            for option in ("numeric", "dates", "qualifier", "several")
        }
        listed["split_by"] = names_in(self.split_by, "--split-by")
        listed["unit_of"] = dict(_with_unit(text) for text in self.unit_of or ())
        return {**vars(self), **listed}


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
