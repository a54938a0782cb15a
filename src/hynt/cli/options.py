"""Arguments and options that many verbs share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from hynt.errors import DataError, UsageError

if TYPE_CHECKING:
    from hynt.front.run import Run
    from hynt.graph.lookup import NameLookup


# What a command takes: arguments, options, and groups of options: frozen dataclasses whose fields are options.


def argument(default: Any, help: str, **more: Any) -> Any:
    """An argument of a command: its default (`...`: it must be given), and what is said of it; `more` is as
    `typer.Argument` takes it.
    """
    return _given(default, typer.Argument, (), {"help": help, **more})


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """An option of a command or of a group: its default (`...`: it must be given), and what is said of it. It is called
    as its parameter, unless by these names; `more` is as `typer.Option` takes it.
    """
    return _given(default, typer.Option, names, {"help": help, **more})


def _given(default: Any, kind: Any, names: tuple[str, ...], more: dict[str, Any]) -> Any:
    told = {"kind": kind, "names": names, "more": more}
    return field(metadata=told) if default is ... else field(default=default, metadata=told)


def said(options: Any) -> dict[str, Any]:
    """A group of options as arguments of the library, which has its own defaults for what was not said."""
    return {name: value for name, value in vars(options).items() if value is not None}


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer wants it: where a parameter is a group, all options of the group stand there."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def flat(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})  # type: ignore[operator]
        command(**given)

    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        group = groups.get(name)
        own = get_type_hints(group, include_extras=True) if group else {name: hints[name]}
        defaults = {one.name: one for one in fields(group)} if group else {name: parameter.default}
        parameters += [_parameter(one, hint, defaults[one]) for one, hint in own.items()]
    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return flat


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    if isinstance(default, Field):
        if told := default.metadata:
            names = told["names"] or ([f"--{name.replace('_', '-')}"] if told["kind"] is typer.Option else ())
            hint = Annotated[hint, told["kind"](*names, **told["more"])]
        default = Parameter.empty if default.default is MISSING else default.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


Device: TypeAlias = Literal["cpu", "cuda", "auto"]
GraphArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph folder, a built-in name such as world, or a run: its graph with all updates."
    ),
]
RunArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run folder made by `hynt train`, or world, the run that comes with hynt."),
]
ScoringDevice: TypeAlias = Annotated[Device, typer.Option("--device", help="Where to score.")]
TrainingDevice: TypeAlias = Annotated[Device, typer.Option("--device", help="Where to train.")]
LevelOption: TypeAlias = Annotated[
    float, typer.Option("--level", help="The confidence level of intervals: 0.5, 0.8, 0.9, 0.95 or 0.99.")
]


AsOf: TypeAlias = Annotated[
    int | None, typer.Option("--as-of", min=0, metavar="N", help="Take the run as it was after N updates of its graph.")
]


def done_in_processes(processes: int, lost: str, advice: str) -> bool:
    """Whether this command was to run in several processes, and now has; `lost` and `advice` are as in `launch`."""
    from hynt.distributed.launch import is_launched, launch

    if processes < 2 or is_launched():
        return False
    if code := launch(sys.argv[1:], processes, lost, advice):
        raise typer.Exit(code)
    return True


@dataclass(frozen=True)
class GraphOptions:
    """Which graph a run is asked about, and at which of its versions."""

    graph: str | None = option(
        None, "Ask about this graph instead, if the model reads observed facts.", metavar="GRAPH"
    )
    as_of: AsOf = None

    def opened(self, run: Path, device: Device = "cpu") -> Run:
        """The run, asked of its own graph, as it is or as it was, or of the one that was named."""
        from hynt.cli.output import note_to_person
        from hynt.front.run import Run

        opened = Run(run, device, note_to_person, version=self.as_of)
        return opened if self.graph is None else opened.on(self.graph)


@dataclass(frozen=True)
class AskedRunOptions(GraphOptions):
    """The same, and where it is scored."""

    device: ScoringDevice = "auto"


# The options that ask a question, the same for `predict` and `explain`.


@dataclass(frozen=True)
class QuestionOptions:
    """A fact with one component written as ?, what may answer it, and how sure an interval is to be."""

    head: str | None = option(None, "The head's id or name, or ? for what is asked.")
    relation: str | None = option(None, "The relation, or ?.")
    tail: str | None = option(None, "An entity, a number (80 kg), a date, or ?.")
    qualifiers: list[str] | None = option(
        None, "A qualifier; one side may be ?. Repeatable.", "--qualifier", metavar="R=V"
    )
    candidates: list[str] | None = option(
        None,
        "Only entities seen in that place, only those not known, or only those of a list. Repeatable.",
        metavar="type|unknown|FILE",
    )
    level: LevelOption = 0.9

    def arguments(self, names: NameLookup) -> dict[str, Any]:
        """The same as `Run.predict` and `Run.explain` take it."""
        from hynt.asking.candidates import read_list
        from hynt.asking.question import pair_from_text

        rules = [rule if rule in ("type", "unknown") else read_list(Path(rule)) for rule in self.candidates or ()]
        pairs = [pair_from_text(text, names) for text in self.qualifiers or ()]
        triplet = {"head": self.head, "relation": self.relation, "tail": self.tail}
        return {**triplet, "qualifiers": pairs, "candidates": rules, "level": self.level}


# An error names the option as it was typed. The library, which Python and the service use too, names its own
# arguments: `level` there is `--level` here, and `heads` is `--head`.

_PLACE = re.compile(r"(?P<part>(?:relation|value) of )?(?P<name>[a-z_]+)(?P<number> \d+)?")  # value of qualifier 2


def name_options(command: Any) -> None:
    """Wrong uses of the command in the words of its options."""
    takes_settings = any("--set" in parameter.opts for parameter in command.params)
    if command.callback is not None and not takes_settings:  # there a bare word is the path of a setting
        command.callback = _renaming(command.callback, _words(command.params))


SHOWING = ("audit", "complete", "evaluate", "explain", "predict", "report", "show", "stats", "trends")
"""The verbs that show numbers, and take --si."""


def _in_si(context: typer.Context, wanted: bool) -> None:
    from hynt.graph.units.conversion import showing_si

    if wanted:
        context.with_resource(showing_si())


def _takes_si(
    si: bool = option(False, "Show numbers in SI units, as they are kept.", callback=_in_si, expose_value=False),
) -> None:
    """Lends its option to the verbs that show numbers."""


def offer_si(command: Any) -> None:
    """--si where numbers are shown."""
    if command.name in SHOWING:
        lender = typer.Typer(add_completion=False)
        lender.command()(with_option_groups(_takes_si))
        command.params += [one for one in typer.main.get_command(lender).params if one.name == "si"]


@contextmanager
def about(place: Path) -> Iterator[None]:
    """Within the block a fault of data that names no place is one of this file or folder as a whole."""
    try:
        yield
    except DataError as problem:
        problem.where = problem.where or str(place)
        raise


def _words(parameters: list[Any]) -> dict[str, str]:
    """What the library may call each option or argument, to what a person types."""
    found: dict[str, str] = {}
    for parameter in parameters:
        typed = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name
        others = ("version",) if typed == "--as-of" else ()
        for name in (parameter.name, typed.lstrip("-").lower().replace("-", "_"), *others):
            found.setdefault(name, typed)
            found.setdefault(f"{name}s", typed)  # one option, repeated for each
    return found


def _renaming(function: Callable[..., Any], words: Mapping[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def renamed(*arguments: Any, **given: Any) -> Any:
        try:
            return function(*arguments, **given)
        except UsageError as problem:
            if problem.where not in _said(given):  # a file or a folder may have the name of an option
                places = [_typed(place, words) for place in problem.where.split(", ")]
                problem.where = ", ".join(filter(None, places)) if all(places) else problem.where
            raise

    return renamed


def _said(given: Mapping[str, Any]) -> set[str]:
    values = [value if isinstance(value, list | tuple) else [value] for value in given.values()]
    return {str(one) for value in values for one in value}


def _typed(place: str, words: Mapping[str, str]) -> str | None:
    """None: it is no option, but a file or a setting."""
    found = _PLACE.fullmatch(place)
    if found is None or found["name"] not in words:
        return None
    return f"{found['part'] or ''}{words[found['name']]}{found['number'] or ''}"
