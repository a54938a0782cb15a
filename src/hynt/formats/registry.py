"""Every format by its name, in one place. Their modules are light: what is heavy is imported when a file is read."""

from __future__ import annotations

from hynt.errors import UsageError
from hynt.formats import csv_edges, hynt, jsonl, nary_json, rdf, stare, tsv
from hynt.formats.format import Format
from hynt.nearest import advice_on

FORMATS: dict[str, Format] = {
    "hynt": hynt.FORMAT,
    "stare": stare.FORMAT,
    "nary-json": nary_json.FORMAT,
    "tsv": tsv.FORMAT,
    "jsonl": jsonl.FORMAT,
    "csv-edges": csv_edges.FORMAT,
    "rdf": rdf.FORMAT,
}


def get_format(name: str) -> Format:
    """The format of that name; a `UsageError` with the nearest name for any other."""
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}.", advice=advice_on(name, FORMATS))
    return FORMATS[name]
