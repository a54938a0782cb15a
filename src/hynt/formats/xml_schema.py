"""The datatypes of XML Schema that say that a literal is a number or a date, by their names after `XSD`."""

from __future__ import annotations

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS = frozenset(
    {
        "integer",
        "long",
        "int",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    }
)
NUMBERS = INTEGERS | {"decimal", "double", "float"}
DATES = frozenset({"date", "dateTime", "gYear", "gYearMonth"})
