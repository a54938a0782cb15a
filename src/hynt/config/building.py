"""From a plain mapping (a TOML file, a JSON object) to a frozen dataclass and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar, get_args, get_origin

from hynt.config.declarations import is_group, settings_of, shape_of, words_for
from hynt.errors import UsageError
from hynt.names import advice_on

T = TypeVar("T")


def from_mapping(cls: type[T], mapping: Mapping[str, Any], path: str = "") -> T:
    """Builds the dataclass `cls`. Every error names the full path of the setting, under `path` when one is given."""
    settings = settings_of(cls)
    for name in mapping:
        if name not in settings:
            advice = advice_on(str(name), settings, joined(path, ""))
            raise UsageError("unknown setting", where=joined(path, str(name)), advice=advice)
    values: dict[str, Any] = {}
    for name, setting in settings.items():
        place = joined(path, name)
        if name in mapping:
            values[name] = converted(setting.annotation, mapping[name], place)
        elif setting.required:
            raise UsageError("a setting is missing", where=place, advice=f"Give {words_for(setting.annotation)}.")
        elif shape_of(setting.annotation).optional:
            values[name] = None
    try:
        return cls(**values)
    except ValueError as error:  # a dataclass's own check across its fields
        raise UsageError(str(error), where=path) from error


def to_mapping(config: Any) -> dict[str, Any]:
    """The settings as plain dictionaries, lists and scalars; a setting that is None is left out."""
    found = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def converted(annotation: Any, value: Any, path: str) -> Any:
    """A plain value as the declared type says, or a `UsageError` that names the path, what was expected and found."""
    shape = shape_of(annotation)
    if value is None and shape.optional:
        return None
    result = _converted(shape.bare, value, path)
    for constraint in shape.constraints:
        if not constraint.admits(result):
            raise UsageError(f"must be {constraint}, but is {value!r}", where=path)
    return result


def _converted(bare: Any, value: Any, path: str) -> Any:
    origin, arguments = get_origin(bare), get_args(bare)
    if is_group(bare):
        return value if isinstance(value, bare) else from_mapping(bare, _table(bare, value, path), path)
    if origin is Literal:
        return _chosen(bare, value, path)
    if origin is tuple:
        return _sequence(bare, value, path)
    if origin is dict and arguments[0] is str:
        items = _table(bare, value, path).items()
        return {_key(key, path): converted(arguments[1], item, joined(path, str(key))) for key, item in items}
    if bare in (bool, int, float, str):
        return _scalar(bare, value, path)
    raise TypeError(f"{path}: hynt's settings do not support the type {bare}")


def _scalar(bare: type, value: Any, path: str) -> Any:
    if bare is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise UsageError("the number is too large", where=path) from None
    # bool is a subclass of int in Python; a setting that wants a count must not take `true`.
    if not isinstance(value, bare) or (bare is int and isinstance(value, bool)):
        raise _wrong(bare, value, path)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"expected a finite number, found {value}", where=path)
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError("the text is not valid Unicode", where=path)
    return value


def _chosen(bare: Any, value: Any, path: str) -> Any:
    allowed = get_args(bare)
    for choice in allowed:
        if type(choice) is type(value) and choice == value:
            return choice
    advice = advice_on(value, [str(choice) for choice in allowed]) if isinstance(value, str) else ""
    raise UsageError(f"expected {words_for(bare)}, found {value!r}", where=path, advice=advice)


def _sequence(bare: Any, value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(bare, value, path)
    arguments = get_args(bare)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    elif len(arguments) != len(value):
        raise UsageError(f"expected {len(arguments)} items, found {len(value)}", where=path)
    typed = enumerate(zip(arguments, value, strict=True))
    return tuple(converted(item_type, item, f"{path}[{index}]") for index, (item_type, item) in typed)


def _table(bare: Any, value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(bare, value, path)
    return value


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise UsageError(f"expected a string as key, found {key!r}", where=path)
    return key


def _wrong(bare: Any, value: Any, path: str) -> UsageError:
    found = "a table" if isinstance(value, Mapping) else repr(value)
    return UsageError(f"expected {words_for(bare)}, found {found}", where=path)


def _plain(value: Any) -> Any:
    if is_group(type(value)):
        return to_mapping(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def joined(path: str, name: str) -> str:
    """A setting's full path, such as `optimiser.learning_rate`."""
    return f"{path}.{name}" if path else name
