"""An error names the option as it was typed. The library, which Python and the service use too, names its own
arguments: `level` there is `--level` here, and `heads` is `--head`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError

_PLACE = re.compile(r"(?P<part>(?:relation|value) of )?(?P<name>[a-z_]+)(?P<number> \d+)?")  # value of qualifier 2


def naming_options(command: Any) -> Any:
    """The command, or group of commands, with the words of its wrong uses changed to its options'."""
    for one in getattr(command, "commands", {}).values():
        naming_options(one)
    takes_settings = any("--set" in parameter.opts for parameter in command.params)
    if command.callback is not None and not takes_settings:  # there a bare word is the path of a setting
        command.callback = _renaming(command.callback, _words(command.params))
    return command


@contextmanager
def said_with(option: str) -> Iterator[None]:
    """Within the block everything that is wrong was said with this option."""
    try:
        yield
    except UsageError as problem:
        raise UsageError(problem.what, where=option, advice=problem.advice) from None


@contextmanager
def about(place: Path) -> Iterator[None]:
    """Within the block a fault of data that names no place is one of this file or folder as a whole."""
    try:
        yield
    except DataError as problem:
        problem.where = problem.where or str(place)
        raise


def _words(parameters: list[Any]) -> dict[str, str]:
    """What the library may call each option or argument, to what a person types."""
    found: dict[str, str] = {}
    for parameter in parameters:
        typed = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name
        for name in (parameter.name, typed.lstrip("-").lower().replace("-", "_")):
            found.setdefault(name, typed)
            found.setdefault(f"{name}s", typed)  # one option, said again for each
    return found


def _renaming(function: Callable[..., Any], words: Mapping[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def renamed(*arguments: Any, **given: Any) -> Any:
        try:
            return function(*arguments, **given)
        except UsageError as problem:
            if problem.where not in _said(given):  # a file or a folder may have the name of an option
                places = [_typed(place, words) for place in problem.where.split(", ")]
                problem.where = ", ".join(filter(None, places)) if all(places) else problem.where
            raise

    return renamed


def _said(given: Mapping[str, Any]) -> set[str]:
    values = [value if isinstance(value, list | tuple) else [value] for value in given.values()]
    return {str(one) for value in values for one in value}


def _typed(place: str, words: Mapping[str, str]) -> str | None:
    """None: it is no option, but a file or a setting."""
    found = _PLACE.fullmatch(place)
    if found is None or found["name"] not in words:
        return None
    return f"{found['part'] or ''}{words[found['name']]}{found['number'] or ''}"
