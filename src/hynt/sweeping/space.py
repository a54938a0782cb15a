"""Which settings a sweep varies, and how, from a plain TOML file:

    [settings]                                        # the same for every trial, as `--set` would say it
    schedule.epochs = 40

    [space]                                           # one line per setting, by its path
    optimiser.learning_rate = { log_range = [1e-4, 1e-2] }
    model.dropout = { range = [0.1, 0.5], step = 0.05 }
    model.context_heads = { choices = [2, 4, 8], also = ["model.prediction_heads"] }

`also` names settings that take the same value. `relative_to_epochs = ["schedule.period"]`, above the tables, names
settings that are counted in epochs: they move along where a sweep has other epochs than the file. Every choice and both
ends of every range are tried on the settings before the first trial, so a wrong path or value is refused at once, by
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from hynt.config import flat, read_toml, with_overrides
from hynt.config.overrides import toml_value
from hynt.errors import UsageError
from hynt.names import advice_on
from hynt.runs.settings import RunSettings

_FORMS = ("choices", "range", "log_range")
_KEYS = (*_FORMS, "step", "also")
_TABLES = ("settings", "space")
_RELATIVE = "relative_to_epochs"
_EPOCHS = "schedule.epochs"


class Suggester(Protocol):
    """The part of an Optuna trial that a space needs."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any: ...

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> float: ...

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int: ...


@dataclass(frozen=True)
class Varied:
    """One setting, or several that move together, and the values they may take."""

    path: str
    also: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()  # empty: a range
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the range holds whole numbers alone."""
        return not self.choices and isinstance(self.low, int) and isinstance(self.high, int)

    def samples(self) -> tuple[Any, ...]:
        """Values that must all be possible: every choice, or both ends."""
        return self.choices or (self.low, self.high)

    def suggest(self, trial: Suggester) -> Any:
        """A value for this trial."""
        if self.choices:
            return trial.suggest_categorical(self.path, list(self.choices))
        if self.is_whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.path, int(self.low), int(self.high), step=step, log=self.log)
        return self.tidy(trial.suggest_float(self.path, self.low, self.high, step=self.step, log=self.log))

    def scaled(self, share: float) -> Varied:
        """Values that are counted in epochs, for `share` times as many epochs."""
        if self.choices:
            return replace(self, choices=tuple(dict.fromkeys(_scaled(value, share) for value in self.choices)))
        low, high = _scaled(self.low, share), _scaled(self.high, share)
        return replace(self, low=low, high=high) if low < high else replace(self, choices=(low,))

    def tidy(self, value: Any) -> Any:
        """The value as a person would write it: 0.1 + 4 · 0.05 is 0.30000000000000004 to a computer."""
        return round(value, 10) if self.step is not None and isinstance(value, float) else value

    def changes(self, value: Any) -> list[str]:
        """The value as `--set` takes it, for each setting that moves with this one."""
        return [f"{path}={toml_value(self.tidy(value))}" for path in (self.path, *self.also)]

    def to_mapping(self) -> dict[str, Any]:
        """As it stands in a file."""
        form: dict[str, Any] = (
            {"choices": list(self.choices)}
            if self.choices
            else {"log_range" if self.log else "range": [self.low, self.high]}
        )
        form |= {} if self.step is None else {"step": self.step}
        return form | ({"also": list(self.also)} if self.also else {})


@dataclass(frozen=True)
class Space:
    """What a sweep varies, and what it holds still."""

    varied: tuple[Varied, ...]
    fixed: tuple[str, ...] = ()  # `path=value`
    source: str = ""  # where it was read, for errors
    relative: tuple[str, ...] = ()  # settings that are counted in epochs, as many as `fixed` says

    def for_epochs(self, epochs: int) -> tuple[Space, dict[str, tuple[int, ...]]]:
        """The space for trials of `epochs` epochs, and the settings that were scaled for it, with their values."""
        said = dict(one.split("=", 1) for one in self.fixed)
        if not self.relative or epochs == int(said[_EPOCHS]):
            return self, {}
        share = epochs / int(said[_EPOCHS])
        moved = {path: _scaled(int(said[path]), share) for path in self.relative if path in said}
        fixed = tuple(f"{path}={moved.get(path, value)}" for path, value in said.items())
        varied = tuple(one.scaled(share) if one.path in self.relative else one for one in self.varied)
        told = {one.path: one.samples() for one in varied if one.path in self.relative}
        return replace(self, fixed=fixed, varied=varied), {path: (value,) for path, value in moved.items()} | told

    def suggest(self, trial: Suggester) -> dict[str, Any]:
        """A value for each varied setting."""
        return {one.path: one.suggest(trial) for one in self.varied}

    def values(self, suggested: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial was given, for people: in the order of the space, as they would write it."""
        return {one.path: one.tidy(suggested[one.path]) for one in self.varied}

    def changes(self, values: Mapping[str, Any]) -> list[str]:
        """Values by path as a list of `path=value`."""
        return [change for one in self.varied for change in one.changes(values[one.path])]

    def fitted(self, settings: RunSettings) -> Space:
        """The space, once each path is known to be a setting's and each value one that it can take. A range written
        with whole numbers holds fractions as well where the setting takes them.
        """
        varied = []
        for one in self.varied:
            for path in (one.path, *one.also):
                for value in one.samples():
                    self._try(settings, path, value)
            takes_fractions = one.is_whole and one.step is None and _takes(settings, one.path, one.low + 0.5)
            varied.append(replace(one, low=float(one.low), high=float(one.high)) if takes_fractions else one)
        return replace(self, varied=tuple(varied))

    def grid(self) -> dict[str, list[Any]]:
        """Every value of every setting; refused where a range leaves no end of them."""
        for one in self.varied:
            if not one.choices:
                raise UsageError(
                    "a grid needs choices, and this is a range.",
                    where=f"{self.source}: space.{one.path}",
                    advice="List its values, or take another sampler.",
                )
        return {one.path: list(one.choices) for one in self.varied}

    def _try(self, settings: RunSettings, path: str, value: Any) -> None:
        try:
            with_overrides(settings, [f"{path}={toml_value(value)}"])
        except UsageError as problem:
            if isinstance(problem.__cause__, ValueError):
                return  # a check across settings: what the others will be is not known yet
            raise problem.at(f"{self.source}: space.{path}") from None


def _takes(settings: RunSettings, path: str, value: Any) -> bool:
    try:
        with_overrides(settings, [f"{path}={toml_value(value)}"])
    except UsageError:
        return False
    return True


def shipped() -> tuple[str, ...]:
    """The names of the spaces that come with hynt."""
    folder = resources.files("hynt") / "sweeping" / "spaces"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_space(source: str) -> Space:
    """A space from a TOML file, or one that comes with hynt by its name."""
    path = Path(source)
    if source in shipped():
        path = Path(str(resources.files("hynt") / "sweeping" / "spaces" / f"{source}.toml"))
    elif not source.endswith(".toml") and not path.exists():
        raise UsageError(f"there is no space {source!r}.", where="--space", advice=advice_on(source, shipped()))
    return space_from(read_toml(path), source)


def space_from(mapping: Mapping[str, Any], source: str) -> Space:
    """A space from what its file says."""
    for name in mapping:
        if name not in (*_TABLES, _RELATIVE):
            advice = advice_on(name, (*_TABLES, _RELATIVE))
            raise UsageError("unknown table", where=f"{source}: {name}", advice=advice)
    for name in _TABLES:
        if not isinstance(mapping.get(name, {}), dict):
            raise UsageError("expected a table", where=f"{source}: {name}")
    varied = tuple(_varied(path, form, source) for path, form in _leaves(mapping.get("space", {}), source))
    if not varied:
        raise UsageError("the space varies nothing.", where=source, advice="Add lines under [space].")
    _refuse_repeats(varied, source)
    settings = flat(mapping.get("settings", {}))
    relative = _relative(mapping.get(_RELATIVE, []), settings, varied, f"{source}: {_RELATIVE}")
    return Space(varied, tuple(f"{path}={toml_value(value)}" for path, value in settings.items()), source, relative)


def _relative(given: Any, settings: Mapping[str, Any], varied: Sequence[Varied], where: str) -> tuple[str, ...]:
    """Paths of settings that are counted in epochs; refused where the file does not say of how many."""
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        raise UsageError("expected a list of the paths of settings, in quotes", where=where)
    if given and not _is_count(settings.get(_EPOCHS)):
        raise UsageError(f"it takes {_EPOCHS} under [settings], which the settings are counted in", where=where)
    ways = {one.path: one.step is None and all(map(_is_count, one.samples())) for one in varied}
    for path in given:
        if not (ways.get(path) or _is_count(settings.get(path))):
            what = f"{path!r} is not a whole number under [settings], nor choices or a range of them under [space]"
            raise UsageError(what, where=where)
    return tuple(given)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _scaled(value: float, share: float) -> int:
    return max(1, round(value * share))


def _leaves(table: Mapping[str, Any], source: str, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The forms of a table of tables: a table with a form or a list in it is a setting's, others are groups."""
    for name, value in table.items():
        place = f"{path}.{name}" if path else name
        if not isinstance(value, dict):
            advice = "Write { choices = [...] }, { range = [low, high] } or { log_range = [low, high] }."
            raise UsageError(f"expected a table, found {value!r}", where=f"{source}: space.{place}", advice=advice)
        if not value or any(key in _KEYS or isinstance(inner, list) for key, inner in value.items()):
            yield place, value
        else:
            yield from _leaves(value, source, place)


def _varied(path: str, form: Mapping[str, Any], source: str) -> Varied:
    where = f"{source}: space.{path}"
    for key in form:
        if key not in _KEYS:
            raise UsageError(f"unknown key {key!r}", where=where, advice=advice_on(key, _KEYS))
    said = [key for key in _FORMS if key in form]
    if len(said) != 1:
        found = "none of them" if not said else " and ".join(said)
        raise UsageError(f"expected one of {', '.join(_FORMS)}, found {found}", where=where)
    also = form.get("also", [])
    if not isinstance(also, list) or not all(isinstance(name, str) for name in also):
        raise UsageError("also lists the paths of settings, in quotes", where=where)
    values = form[said[0]]
    if said[0] == "choices":
        scalars = isinstance(values, list) and all(isinstance(value, bool | int | float | str) for value in values)
        if not scalars or not values or "step" in form:
            raise UsageError("choices is a list of numbers, words or true and false, without step", where=where)
        if len(set(map(toml_value, values))) < len(values):
            raise UsageError("a choice is listed twice", where=where)
        return Varied(path, tuple(also), choices=tuple(values))
    return _range(path, tuple(also), form, values, where, log=said[0] == "log_range")


def _range(path: str, also: tuple[str, ...], form: Mapping[str, Any], ends: Any, where: str, *, log: bool) -> Varied:
    numbers = isinstance(ends, list) and len(ends) == 2 and all(_is_number(end) for end in ends)
    if not numbers or not ends[0] < ends[1] or (log and ends[0] <= 0):
        least = ", both above 0" if log else ""
        raise UsageError(f"a range is [low, high] with low below high{least}", where=where)
    step = form.get("step")
    if step is not None and (log or not _is_number(step) or step <= 0 or step > ends[1] - ends[0]):
        raise UsageError("step is a number above 0 that fits into the range, and log_range has none", where=where)
    if not all(isinstance(part, int) for part in (*ends, 1 if step is None else step)):
        ends = [float(end) for end in ends]
    return Varied(path, also, low=ends[0], high=ends[1], step=step, log=log)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _refuse_repeats(varied: Sequence[Varied], source: str) -> None:
    seen: set[str] = set()
    for path in (path for one in varied for path in (one.path, *one.also)):
        if path in seen:
            raise UsageError("the setting is varied twice", where=f"{source}: space.{path}")
        seen.add(path)
