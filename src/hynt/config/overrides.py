"""Settings in TOML files, and changed from the command line: `--set optimizer.learning_rate=1e-3`.

Python reads TOML itself; the few lines that write it are here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from hynt.config.declarations import from_mapping, is_group, joined, settings_of, shape_of, to_mapping, words_for
from hynt.errors import UsageError
from hynt.limits import LARGEST_SETTINGS
from hynt.names import advice_on

T = TypeVar("T")


def with_overrides(config: T, overrides: Iterable[str]) -> T:
    """A copy with settings changed by `path=value`, later ones winning.

    A value is written as in TOML; where the setting is a string, a bare word does too, and where it is a number, `.05`.
    `none` empties a setting that may be None (a string that really reads none is written with quotes).
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


def flat(mapping: Mapping[str, Any], between: str = ".", within: str = "") -> dict[str, Any]:
    """Nested tables as one, names joined."""
    found: dict[str, Any] = {}
    for name, value in mapping.items():
        path = f"{within}{between}{name}" if within else str(name)
        found |= flat(value, between, path) if isinstance(value, Mapping) else {path: value}
    return found


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
    if shape.bare is float and _SHORT_NUMBER.match(text):
        return float(text)
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


_SHORT_NUMBER = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
"""`.05` and `5.`, which people write and TOML does not know."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def load_toml(path: Path, cls: type[T]) -> T:
    """Reads the dataclass `cls` from a TOML file; errors name the file and the setting."""
    mapping = read_toml(path)
    try:
        return from_mapping(cls, mapping)
    except UsageError as problem:
        raise problem.at(f"{path}: {problem.where}" if problem.where else str(path)) from None


_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){50}""")
"""What tomllib takes memory for by the square of its length."""


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file of settings says, before anything is made of it; errors name the file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_SETTINGS + 1)
    except OSError as error:
        what = f"cannot read the settings: {error.strerror}."
        raise UsageError(what, where=str(path), advice="Check the path and who may read it.") from error
    if len(content) > LARGEST_SETTINGS:
        raise UsageError("too large for a file of settings", where=str(path), advice="Name the right file.")
    try:
        text = content.decode()
        if _LONG_KEY.search(text):
            raise UsageError("a key has very many parts", where=str(path), advice="A setting's has four at most.")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), advice="Save the file as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not valid TOML: {error}", where=str(path), advice="Correct it there.") from error


def dump_toml(config: Any, path: Path) -> None:
    """Writes a config dataclass, so that `load_toml` gives an equal one."""
    path.write_text(to_toml(config), encoding="utf-8", newline="\n")


def to_toml(config: Any) -> str:
    """A config dataclass as TOML text."""
    lines: list[str] = []
    _write_table(to_mapping(config), (), lines)
    return "\n".join(lines) + "\n"


def _write_table(table: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """The table's own values first, then its tables: TOML would take a value after a table as that table's."""
    if path:
        lines.extend([""] if lines else [])
        lines.append(f"[{'.'.join(toml_key(part) for part in path)}]")
    lines.extend(
        f"{toml_key(name)} = {toml_value(value)}" for name, value in table.items() if not isinstance(value, dict)
    )
    for name, value in table.items():
        if isinstance(value, dict):
            _write_table(value, (*path, name), lines)


def toml_key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _string(name)


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, dict):  # inside a list, where no table header can stand
        return f"{{{', '.join(f'{toml_key(name)} = {toml_value(item)}' for name, item in value.items())}}}"
    raise TypeError(f"a setting cannot be {type(value).__name__}")


def _string(text: str) -> str:
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    is_control = character < " " or character == "\x7f"
    return f"\\u{ord(character):04x}" if is_control else character
