"""Every kind of dump by its name, in one place; a parser's module is imported when its dump is first read."""

from __future__ import annotations

from importlib import import_module

from hynt.creation.sources.source import DumpSource
from hynt.errors import UsageError
from hynt.names import advice_on

SOURCES = {
    "wikidata": ("wikidata", "WikidataDump"),
    "yago": ("yago", "YagoDump"),
    "freebase": ("freebase", "FreebaseDump"),
}
"""Name → (module in this room, class)."""


def get_source(name: str) -> DumpSource:
    """The kind of dump of that name."""
    if name not in SOURCES:
        raise UsageError(f"unknown source {name!r}.", advice=advice_on(name, SOURCES))
    module, kind = SOURCES[name]
    try:
        source: DumpSource = getattr(import_module(f"hynt.creation.sources.{module}"), kind)()
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"{name} dumps need the package {problem.name}.", advice="Install it with: pip install 'hynt[create]'."
        ) from None
    return source


def prelude_of(name: str) -> str | None:
    """The SQL file that joins a dump's lines before the recipe; None where a line says all there is to say."""
    return None if name == "wikidata" else f"sources/{name}.sql"
