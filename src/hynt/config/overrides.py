"""`--set optimizer.learning_rate=1e-3`: one setting changed from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from hynt.config.building import from_mapping, joined, to_mapping
from hynt.config.declarations import is_group, settings_of, shape_of, words_for
from hynt.config.toml_files import toml_key, toml_value
from hynt.errors import UsageError
from hynt.names import advice_on

T = TypeVar("T")


def with_overrides(config: T, overrides: Iterable[str]) -> T:
    """A copy with settings changed by `path=value`, later ones winning.

    A value is written as in TOML; where the setting is a string, a bare word does too. `none` empties a setting that
    may be None (a string that really reads none is written with quotes).
    """
    mapping = to_mapping(config)
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals:
            raise UsageError(f"cannot read the override {override!r}", advice="Write it as key=value.")
        parts = _parts(path.strip(), override)
        annotation = _declared(type(config), parts)
        _put(mapping, parts, _value(annotation, text.strip(), ".".join(parts)))
    return from_mapping(type(config), mapping)


def overrides_of(settings: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Settings given as Python values, `{"batch_size": 512, "schedule": {"epochs": 5}}`, as `path=value`."""
    for name, value in settings.items():
        path = f"{within}.{toml_key(name)}" if within else name
        if isinstance(value, Mapping):
            yield from overrides_of(value, path)
        elif value is None:
            yield f"{path}=none"
        else:
            yield f"{path}={toml_value(list(value) if isinstance(value, tuple) else value)}"


def _parts(path: str, override: str) -> list[str]:
    """The names in a dotted path, by TOML's own rules, so that a quoted name may hold a dot."""
    try:
        node: Any = tomllib.loads(f"{path} = 0")
    except (ValueError, RecursionError):
        node = {}
    parts: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        ((name, node),) = node.items()
        parts.append(name)
    if node != 0 or not parts:
        advice = "Write it as key=value, with dots between names."
        raise UsageError(f"cannot read the override {override!r}", advice=advice)
    return parts


def _declared(annotation: Any, parts: list[str]) -> Any:
    """The declared type of the setting at this path."""
    path = ""
    for part in parts:
        bare = shape_of(annotation).bare
        if is_group(bare):
            settings = settings_of(bare)
            if part not in settings:
                raise UsageError(
                    "unknown setting", where=joined(path, part), advice=advice_on(part, settings, joined(path, ""))
                )
            annotation = settings[part].annotation
        elif get_origin(bare) is dict:
            annotation = get_args(bare)[1]
        else:
            raise UsageError(f"{path} is {words_for(bare)} and holds no settings of its own", where=joined(path, part))
        path = joined(path, part)
    return annotation


def _value(annotation: Any, text: str, path: str) -> Any:
    shape = shape_of(annotation)
    if shape.optional and text == "none":
        return None
    if get_origin(shape.bare) is Literal:
        for choice in get_args(shape.bare):
            if text == str(choice):
                return choice
    takes_words = shape.bare is str or get_origin(shape.bare) is Literal
    if takes_words and not text.startswith(('"', "'")):
        return text
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        parsed = {}
    if set(parsed) != {"value"}:  # unreadable, or more than one line
        advice = 'Write text in quotes and lists as ["a", "b"].'
        raise UsageError(f"expected {words_for(annotation)}, found {text!r}", where=path, advice=advice)
    return parsed["value"]


def _put(mapping: dict[str, Any], parts: list[str], value: Any) -> None:
    *groups, name = parts
    for group in groups:
        mapping = mapping.setdefault(group, {})
    if value is None:
        mapping.pop(name, None)
    else:
        mapping[name] = value
