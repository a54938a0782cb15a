"""Writes `docs/reference/api.md` from the docstrings of all that `import hynt` offers.

python -m tools.api_reference            # after a public name, its arguments or its words have changed
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ForwardRef

import hynt

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
LONGEST_LINE = 100
FOR_OTHER_ROOMS = frozenset(
    {
        "answer",
        "answer_many",
        "asked_of",
        "observing",
        "question_batch",
        "saved",
        "loaded",
        "trained",
        "device",
        "known",
        "names",
    }
)
"""What the parts of hynt itself need of a run or a graph, and a reader of the reference does not."""

START = """# Python API

Look up all that `import hynt` offers. Made from the docstrings by `tools/api_reference.py`; a test keeps it up to date
and runs every example. Names are loaded on first use, so `import hynt` is quick.

In the examples `graph` is a small part of the built-in graph [`world`](../background/world.md), `run` a run trained on
it, and `address` where that run is [served](../how-to/serving.md). Errors are a `hynt.HyntError` that says what
happened, where, and what to do.
"""
GROUPS = {
    "Graphs": (
        "read_graph",
        "load_graph",
        "import_graph",
        "import_source",
        "check_source",
        "graph_from_facts",
        "graph_from_table",
        "export_graph",
        "create",
        "KnowledgeGraph",
        "Fact",
        "Number",
        "Qualifier",
        "fact",
        "number",
    ),
    "Runs": ("train", "estimate", "load", "Run", "Answers", "draw"),
    "Many runs": ("ensemble", "compare", "sweep", "audit", "push", "pull"),
    "A served run": ("serve", "Client"),
    "What there is": ("list_graphs", "list_formats", "list_published", "list_models", "check_model"),
    "Errors": ("HyntError", "DataError", "UsageError"),
}


def page() -> str:
    """The whole page."""
    listed = [name for names in GROUPS.values() for name in names]
    unlisted = set(hynt.__all__) - set(listed) - {"__version__"}
    if unlisted:
        raise SystemExit(f"give {', '.join(sorted(unlisted))} a place in GROUPS")
    parts = [START]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += entry(f"hynt.{name}", getattr(hynt, name), "###")
    return "\n".join(parts)


def entry(name: str, thing: Any, level: str) -> Iterator[str]:
    """A name with its arguments and words; of a class, all that it offers as well."""
    yield f"{level} `{name}`\n"
    if isinstance(thing, property | cached_property):
        made: Any = getattr(thing, "fget", None) or getattr(thing, "func", None)
        yield f"```python\n{name}: {_annotation(inspect.signature(made).return_annotation)}\n```\n"
    elif not _is_record(thing):
        yield f"```python\n{signature(name, thing)}\n```\n"
        yield from options_of(thing)
    yield words(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, one in members(thing):
            yield from entry(f"{name.rpartition('.')[2]}.{member}", one, f"{level}#")


def members(kind: type, *, methods: bool = False) -> Iterator[tuple[str, Any]]:
    """The methods and properties that a class offers, or the methods alone, in the order in which they stand, inherited
    ones last.
    """
    seen = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("hynt."):
            continue
        for name, one in vars(owner).items():
            if methods and not inspect.isfunction(one) and not isinstance(one, (classmethod, staticmethod)):
                continue
            one = one.__func__ if isinstance(one, (classmethod, staticmethod)) else one
            is_public = (not name.startswith("_") or name == "__getitem__") and name not in FOR_OTHER_ROOMS
            is_offered = inspect.isfunction(one) or isinstance(one, property | cached_property)
            if is_public and is_offered and name not in seen and inspect.getdoc(one):
                seen.add(name)
                yield name, one


def _is_record(thing: Any) -> bool:
    """Errors are raised, not made by callers."""
    return inspect.isclass(thing) and issubclass(thing, Exception)


def signature(name: str, thing: Callable[..., Any]) -> str:
    """`train(graph: AnyGraph, model: str = "hynt", …) -> Run`, on several lines where it is long."""
    found = inspect.signature(thing)
    parts: list[str] = []
    star = False
    for one in found.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not star and not any(part.startswith("*") for part in parts):
            parts.append("*")
            star = True
        parts.append(_parameter(one))
    returned = found.return_annotation
    end = "" if returned is inspect.Signature.empty or inspect.isclass(thing) else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) <= LONGEST_LINE:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){end}"])


def options_of(thing: Callable[..., Any]) -> Iterator[str]:
    """The keyword arguments that a function takes by the name of their types, as they are declared."""
    for one in inspect.signature(thing).parameters.values():
        named = re.fullmatch(r"Unpack\[(\w+)\]", str(one.annotation))
        if named is not None:
            yield f"```python\n{inspect.getsource(thing.__globals__[named[1]]).rstrip()}\n```\n"


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
    if one.default is one.empty:
        return f"{stars}{one.name}{kind}"
    is_plain = isinstance(one.default, (bool, int, float, str, tuple)) or one.default is None
    default = ("…" if not is_plain else repr(one.default)).replace("'", '"')
    return f"{stars}{one.name}{kind} = {default}"


def _annotation(given: Any) -> str:
    if isinstance(given, ForwardRef):
        return given.__forward_arg__
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def words(text: str) -> str:
    """A docstring as a page has it: paragraphs, and examples in blocks of their own."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif block.startswith("    "):
            blocks.append(f"```\n{inspect.cleandoc(block)}\n```")
        else:
            start, arrow, example = block.partition("\n>>>")
            blocks.append(" ".join(start.split()))
            if arrow:
                blocks.append(f"```pycon\n>>>{example}\n```")
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: {len(page().splitlines())} lines")
