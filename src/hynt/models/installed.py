"""Models of other packages: found by their entry points, imported only when asked for by name or listed.

A package says in its `pyproject.toml`

    [project.entry-points."hynt.models"]
    distmult = "my_models.distmult:ENTRY"

where ENTRY is what `hynt.models.registry.entry_of` made. Then `hynt train --model distmult` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hynt.errors import UsageError

GROUP = "hynt.models"


def offered() -> Mapping[str, list[EntryPoint]]:
    """Every name that an installed package offers, without importing anything; two packages may offer one name."""
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point not in found.setdefault(point.name, []):
            found[point.name].append(point)
    return found


def loaded(name: str, kind: type[Any]) -> Any:
    """The entry that a package offers under `name`, of the type `kind`; whatever is wrong with it is a UsageError."""
    points = offered()[name]
    if len(points) > 1:
        packages = " and ".join(_package(point) for point in points)
        raise UsageError(f"the model {name!r} is offered by {packages}.", advice="Remove all of these but one.")
    (point,) = points
    advice = "Repair that package, or remove it."
    try:
        entry = point.load()
    except Exception as problem:  # whatever a package's import does is told as its own fault
        words = f"{type(problem).__name__}: {problem}"
        raise UsageError(
            f"the model {name!r} of {_package(point)} cannot be imported from {point.value}: {words}.", advice=advice
        ) from problem
    if not isinstance(entry, kind):
        found = type(entry).__name__
        raise UsageError(
            f"the model {name!r} of {_package(point)}, {point.value}, is no {kind.__name__} but a {found}.",
            advice="Let the entry point name what hynt.models.registry.entry_of made.",
        )
    if not is_dataclass(entry.settings):
        raise UsageError(f"the settings of the model {name!r} of {_package(point)} are no dataclass.", advice=advice)
    return entry


def _package(point: EntryPoint) -> str:
    distribution = point.dist
    return "a package without a name" if distribution is None else f"{distribution.name} {distribution.version}"
