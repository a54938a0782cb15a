"""Settings in TOML files. Python reads TOML itself; the few lines that write it are here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from hynt.config.building import from_mapping, to_mapping
from hynt.errors import UsageError
from hynt.limits import LARGEST_SETTINGS

T = TypeVar("T")

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def load_toml(path: Path, cls: type[T]) -> T:
    """Reads the dataclass `cls` from a TOML file; errors name the file and the setting."""
    mapping = read_toml(path)
    try:
        return from_mapping(cls, mapping)
    except UsageError as problem:
        raise problem.at(f"{path}: {problem.where}" if problem.where else str(path)) from None


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file of settings says, before anything is made of it; errors name the file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_SETTINGS + 1)
    except OSError as error:
        raise UsageError(f"cannot read the settings: {error.strerror}", where=str(path)) from error
    if len(content) > LARGEST_SETTINGS:
        raise UsageError("too large for a file of settings", where=str(path), advice="Name the right file.")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), advice="Save the file as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not valid TOML: {error}", where=str(path)) from error


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
