"""What a setting's value must satisfy beyond its type, as data beside the type: `Annotated[float, Range(0, 1)]`; and
from a plain mapping (a TOML file, a JSON object) to a frozen dataclass and back.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from hynt.errors import UsageError
from hynt.limits import LARGEST_FACTOR, MOST_COUNTED
from hynt.names import advice_on


@runtime_checkable
class Constraint(Protocol):
    """Anything that can say what a value ought to be."""

    def admits(self, value: Any) -> bool:
        """Whether the value, already of the declared type, satisfies the constraint."""

    def __str__(self) -> str:
        """The rule in words, to follow "must be"."""


@dataclass(frozen=True)
class Range:
    """A number between two bounds, both included by default; a bound that is None does not apply."""

    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False
    below_maximum: bool = False

    def admits(self, value: Any) -> bool:
        """Whether the number lies in the range."""
        if self.minimum is not None and (value <= self.minimum if self.above_minimum else value < self.minimum):
            return False
        return self.maximum is None or not (value >= self.maximum if self.below_maximum else value > self.maximum)

    def __str__(self) -> str:
        parts = []
        if self.minimum is not None:
            parts.append(f"{'above' if self.above_minimum else 'at least'} {self.minimum}")
        if self.maximum is not None:
            parts.append(f"{'below' if self.below_maximum else 'at most'} {self.maximum}")
        return " and ".join(parts) or "any number"


Count: TypeAlias = Annotated[int, Range(1)]
Share: TypeAlias = Annotated[float, Range(0, 1)]
Rate: TypeAlias = Annotated[float, Range(0, 1, below_maximum=True)]
"""A share that may not be all, such as that of what dropout drops."""
Positive: TypeAlias = Annotated[float, Range(0, above_minimum=True)]


# What a dataclass declares about its settings: the fields, and the parts of a field's type.


class Setting(NamedTuple):
    """One field: its declared type and whether a value must be given."""

    annotation: Any
    required: bool


class Shape(NamedTuple):
    """A declared type taken apart: the bare type, whether None is allowed, and the constraints on it."""

    bare: Any
    optional: bool
    constraints: tuple[Constraint, ...]


def settings_of(cls: type) -> dict[str, Setting]:
    """The settings of a config dataclass, in order. A declaration that could not be saved and loaded is refused."""
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Setting] = {}
    for field in fields(cls):
        required = field.default is MISSING and field.default_factory is MISSING
        if shape_of(hints[field.name]).optional and not required and field.default is not None:
            # A file says None by leaving the key out, so leaving it out must mean None.
            raise TypeError(f"{cls.__name__}.{field.name}: a setting that may be None must have None as its default")
        found[field.name] = Setting(hints[field.name], required and not shape_of(hints[field.name]).optional)
    return found


def shape_of(annotation: Any) -> Shape:
    """Takes `Annotated[...]` and `... | None` off a declared type."""
    constraints: tuple[Constraint, ...] = ()
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *marks = get_args(annotation)
            constraints += tuple(mark for mark in marks if isinstance(mark, Constraint))
        elif origin in (Union, types.UnionType):
            members = [member for member in get_args(annotation) if member is not type(None)]
            if len(members) != 1 or len(get_args(annotation)) != 2:
                raise TypeError(f"a setting has one type, or one type and None, not {annotation}")
            annotation, optional = members[0], True
        else:
            return Shape(annotation, optional, constraints)


def is_group(annotation: Any) -> bool:
    """Whether the type is a dataclass, that is, a group of settings."""
    return isinstance(annotation, type) and is_dataclass(annotation)


def words_for(annotation: Any) -> str:
    """A declared type in words, for errors."""
    bare = shape_of(annotation).bare
    arguments = get_args(bare)
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    if bare in plain:
        return plain[bare]
    if get_origin(bare) is Literal:
        return f"one of {', '.join(str(allowed) for allowed in arguments)}"
    if get_origin(bare) is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return f"a list, each item {words_for(arguments[0])}"
        return f"a list of {len(arguments)}"
    return "a table"


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
        raise UsageError(str(error), where=path, advice=getattr(error, "advice", "")) from error


class UnfitSettings(ValueError):
    """Settings that do not go together, by a dataclass's own check, and what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.advice = advice


def check_heads(dimension: int, heads: int) -> None:
    """Refuses a dimension that attention heads cannot share, in a dataclass's own check."""
    if dimension % heads:
        what = f"the dimension {dimension} cannot be shared among {heads} heads"
        fits = heads * -(-dimension // heads)
        raise UnfitSettings(what, f"Take a multiple of {heads}, such as {fits}, or another number of heads.")


def to_mapping(config: Any) -> dict[str, Any]:
    """The settings as plain dictionaries, lists and scalars; a setting that is None is left out."""
    found = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def converted(annotation: Any, value: Any, path: str) -> Any:
    """A plain value as the declared type says, or a `UsageError` that names the path, what was expected and found.

    What counts something, and has no maximum of its own, may not count without end.
    """
    shape = shape_of(annotation)
    if value is None and shape.optional:
        return None
    result = _converted(shape.bare, value, path)
    if type(result) is float and abs(result) > LARGEST_FACTOR:
        raise UsageError(f"must be at most {LARGEST_FACTOR:g}, but is {result:g}", where=path)
    for constraint in shape.constraints:
        if not constraint.admits(result):
            raise UsageError(f"must be {constraint}, but is {value!r}", where=path)
        if type(result) is int and result > MOST_COUNTED and getattr(constraint, "maximum", None) is None:
            raise UsageError(f"must be at most {MOST_COUNTED:,}, but is {result:,}", where=path)
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
