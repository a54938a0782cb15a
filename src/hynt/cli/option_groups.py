"""Options that several commands share: a frozen dataclass whose fields are the options, taken as one parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer wants it: for a parameter that is such a group, all options of the group stand there."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def flat(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})  # type: ignore[operator]
        command(**given)

    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        parameters.extend(
            _options(groups[name]) if name in groups else [_keyword(name, hints[name], parameter.default)]
        )
    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return flat


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _keyword(field.name, hints[field.name], Parameter.empty if field.default is MISSING else field.default)
        for field in fields(group)
    ]


def _keyword(name: str, hint: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
