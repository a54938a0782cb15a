"""What a setting's value must satisfy beyond its type, as data beside the type: `Annotated[float, Range(0, 1)]`."""

from __future__ import annotations

import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)


@runtime_checkable
class Constraint(Protocol):
    """Anything that can say what a value ought to be."""

    def admits(self, value: Any) -> bool:
        """Whether the value, already of the declared type, satisfies the constraint."""
        ...

    def __str__(self) -> str:
        """The rule in words, to follow "must be"."""
        ...


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
