"""What a fact is: a triplet with qualifiers, whose values are entities or numbers.

    ((Harvard Law School, students count, 1990), {(point in time, 2020)})

An entity is written as its id, a plain string. A number is a `Number`: its kind is said by its type, never guessed
from text. Named tuples, because a reader makes millions of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from hynt.errors import DataError

DATE_UNIT = "date"
"""The unit of calendar dates, held as decimal years (see `hynt.graph.units.dates`); year 0 is 1 BCE."""


class Number(NamedTuple):
    """A number, the literal it was written as, and its unit ("" when it has none).

    >>> hynt.Number(80.0, "80", "kg").unit
    'kg'
    """

    value: float
    literal: str
    unit: str = ""


Value: TypeAlias = str | Number
"""The tail of a fact or the value of a qualifier: an entity id or a number."""


class Qualifier(NamedTuple):
    """A relation and a value that say more about a triplet.

    >>> hynt.Qualifier("sex", "female").relation
    'sex'
    """

    relation: str
    value: Value


ValueKey: TypeAlias = tuple[bool, float, str]
"""A comparable stand-in for a value: (is a number, its value, its entity id); numbers compare by value, not by
spelling.
"""

FactKey: TypeAlias = tuple[str, str, ValueKey, tuple[tuple[str, ValueKey], ...]]


class Fact(NamedTuple):
    """A head entity, a relation, a tail, and an unordered multiset of qualifiers.

    >>> head, relation, tail, qualifiers = hynt.fact("Ann", "knows", "Bob", [("since", 2020)])
    >>> qualifiers
    (Qualifier(relation='since', value=Number(value=2020.0, literal='2020', unit='')),)
    """

    head: str
    relation: str
    tail: Value
    qualifiers: tuple[Qualifier, ...] = ()

    def key(self) -> FactKey:
        """Equal for two facts exactly when they state the same, whatever the order of their qualifiers."""
        pairs = sorted((relation, value_key(value)) for relation, value in self.qualifiers)
        return (self.head, self.relation, value_key(self.tail), tuple(pairs))


def value_key(value: Value) -> ValueKey:
    """A value as something that sorts and compares: numbers by value, entities by id."""
    if isinstance(value, Number):
        return (True, value.value + 0.0, "")  # + 0.0 turns -0.0 into 0.0: they are one number
    return (False, 0.0, value)


def number(value: float, unit: str = "", literal: str | None = None) -> Number:
    """A number made in a program: its literal is Python's shortest spelling unless one is given.

    >>> hynt.number(80, "kg")
    Number(value=80.0, literal='80', unit='kg')
    """
    try:
        return Number(float(value), repr(value) if literal is None else literal, unit)
    except (OverflowError, ValueError):  # Python refuses to spell an int of thousands of digits
        raise DataError(
            "a whole number is too large for a double-precision number.", advice="Write numbers up to 1.7e308."
        ) from None


def as_pairs(qualifiers: Any) -> Any:
    """Qualifiers as pairs: those of a mapping from relation to value, where a list gives a relation several values;
    anything else as it is.
    """
    if not isinstance(qualifiers, Mapping):
        return qualifiers
    several = ((name, value if isinstance(value, list) else [value]) for name, value in qualifiers.items())
    return [(name, value) for name, values in several for value in values]


def fact(head: str, relation: str, tail: Value | float, qualifiers: Iterable[tuple[str, Value | float]] = ()) -> Fact:
    """A fact from plain Python values: strings are entities, int and float are numbers without a unit.

    >>> hynt.fact("Ann", "height", 1.7).tail
    Number(value=1.7, literal='1.7', unit='')
    """
    return Fact(head, relation, _value(tail), tuple(Qualifier(name, _value(value)) for name, value in qualifiers))


def _value(value: Value | float) -> Value:
    if isinstance(value, str | Number):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a value is a string, a number or a hynt Number, not {type(value).__name__}")
    return number(value)
