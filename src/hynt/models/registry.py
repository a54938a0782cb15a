"""All models by name, in one place a reader can see.

Models of other packages are found by their entry points, and imported only when asked for by name or listed. A package
says in its `pyproject.toml`

    [project.entry-points."hynt.models"]
    distmult = "my_models.distmult:ENTRY"

where ENTRY is what `hynt.models.registry.entry_of` made. Then `hynt train --model distmult` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from torch import nn

from hynt.batches.fact_tensors import FactTensors, Sizes
from hynt.config.declarations import from_mapping
from hynt.errors import UsageError
from hynt.models.contract import Capability, Part
from hynt.models.gran import Gran, GranSettings
from hynt.models.hinge import Hinge, HingeSettings
from hynt.models.hy_transformer import HyTransformer, HyTransformerSettings
from hynt.models.hynt import Hynt, HyntSettings
from hynt.models.hynt_inductive import HyntInductive, HyntInductiveSettings
from hynt.models.kbln import Kbln, KblnSettings
from hynt.models.literale import Literale, LiteraleSettings
from hynt.models.mt_kgnn import MtKgnn, MtKgnnSettings
from hynt.models.nalp import Nalp, NalpSettings
from hynt.models.neuinfer import NeuInfer, NeuInferSettings
from hynt.models.ram import Ram, RamSettings
from hynt.models.stare import Stare, StareSettings
from hynt.models.tnalp import Tnalp, TnalpSettings
from hynt.models.transea import Transea, TranseaSettings
from hynt.models.trivial import (
    Frequency,
    NeighbourMean,
    NeighbourMeanSettings,
    RelationMean,
    RelationMedian,
    TrivialSettings,
)
from hynt.names import Registry, advice_on
from hynt.objectives.streams import ItemStream


def _never(settings: Any) -> bool:  # noqa: ARG001
    return False


def _always(settings: Any) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True)
class ModelEntry:
    """A model's name, what it can do, and how it is made."""

    summary: str
    settings: type[Any]  # a frozen dataclass, all of whose fields have defaults
    build: Callable[[Sizes, FactTensors, Any], nn.Module]  # from sizes, training facts and settings
    streams: tuple[type[ItemStream], ...]  # what its phases train on; none: it is made from the training facts at once
    answers: frozenset[Capability]
    reads: frozenset[Part]
    needs_literals: Callable[[Any], bool] = _never  # whether, with these settings, facts must carry ids of literals

    @property
    def learns(self) -> bool:
        """Whether it is trained by steps."""
        return bool(self.streams)

    @property
    def can_be_shared(self) -> bool:
        """Whether several processes can train it together."""
        return self.learns and all(stream.can_be_shared for stream in self.streams)

    @property
    def trained_on(self) -> str:
        """What it learns from first, in words."""
        return self.streams[0].name if self.streams else "none"


def entry_of(
    model: Any, settings: type[Any], summary: str, needs_literals: Callable[[Any], bool] = _never
) -> ModelEntry:
    """The entry of a model class that says what it can do as class attributes: what a package registers, too."""
    return ModelEntry(summary, settings, model.build, model.streams, model.answers, model.reads, needs_literals)


class Listed(NamedTuple):
    """All models that can be listed, and what is wrong with those that cannot."""

    entries: dict[str, ModelEntry]
    problems: dict[str, str]


class Models(Registry[ModelEntry]):
    """The models below, and by name those of other packages, which are imported when they are asked for.

    Iterating gives the models below alone; `listed` imports the others too. None of them can take the place of one
    below.
    """

    def get(self, name: str) -> ModelEntry:
        """A model's entry; an unknown name is a `UsageError` that lists what is known, other packages' too."""
        if name in self._things:
            return self._things[name]
        if name in offered_models():
            entry: ModelEntry = _load_offered(name, ModelEntry)
            return entry
        known = [*self._things, *offered_models()]
        raise UsageError(f"unknown {self.kind} {name!r}", advice=advice_on(name, known))

    def listed(self) -> Listed:
        """Every model, those of other packages last; one that cannot be loaded is told and keeps nobody else out."""
        entries, problems = dict(self._things), {}
        for name in offered_models():
            try:
                if name in self._things:
                    what = f"a package offers a model {name!r}, but that name is hynt's own."
                    raise UsageError(what, advice="Ask whoever made the package for another name.")
                entries[name] = self.get(name)
            except UsageError as problem:
                problems[name] = str(problem)
        return Listed(entries, problems)


MODELS = Models("model")
MODELS.add(
    "hynt",
    entry_of(
        Hynt,
        HyntSettings,
        "context and prediction transformers over triplets, qualifiers and numbers (KDD 2023)",
        needs_literals=lambda settings: settings.numbers == "discrete",
    ),
)
MODELS.add(
    "hynt-inductive",
    entry_of(
        HyntInductive,
        HyntInductiveSettings,
        "entities and relations from the facts that name them, also those never trained on",
    ),
)
MODELS.add("transea", entry_of(Transea, TranseaSettings, "translations of unit vectors, numbers by projection (2018)"))
MODELS.add("mt-kgnn", entry_of(MtKgnn, MtKgnnSettings, "DistMult, and networks for the numbers of its entities (2017)"))
MODELS.add("kbln", entry_of(Kbln, KblnSettings, "DistMult, and an expert in differences of literals (2018)"))
MODELS.add(
    "literale", entry_of(Literale, LiteraleSettings, "entities gated with their literals before DistMult (2019)")
)
MODELS.add(
    "stare", entry_of(Stare, StareSettings, "a graph encoder that sees qualifiers, and a transformer (2020)", _always)
)
MODELS.add(
    "hy-transformer",
    entry_of(HyTransformer, HyTransformerSettings, "StarE's transformer without its graph encoder (2021)", _always),
)
MODELS.add("gran", entry_of(Gran, GranSettings, "a transformer over the fact's own graph (ACL 2021)", _always))
MODELS.add("nalp", entry_of(Nalp, NalpSettings, "how related a fact's pairs of role and value are (2019)", _always))
MODELS.add("tnalp", entry_of(Tnalp, TnalpSettings, "NaLP, and whether types of roles and values fit (2021)", _always))
MODELS.add("ram", entry_of(Ram, RamSettings, "roles from a shared basis, and products of entities (2021)", _always))
MODELS.add("hinge", entry_of(Hinge, HingeSettings, "convolutions over triplets and their qualifiers (2020)", _always))
MODELS.add("neuinfer", entry_of(NeuInfer, NeuInferSettings, "valid triplets and qualifiers that agree (2020)", _always))
MODELS.add("relation-mean", entry_of(RelationMean, TrivialSettings, "a number is the mean of its relation"))
MODELS.add("relation-median", entry_of(RelationMedian, TrivialSettings, "a number is the median of its relation"))
MODELS.add(
    "neighbour-mean", entry_of(NeighbourMean, NeighbourMeanSettings, "a number is the mean of the head's neighbours")
)
MODELS.add("frequency", entry_of(Frequency, TrivialSettings, "an answer is as likely as it is frequent in its place"))


def build(name: str, sizes: Sizes, train: FactTensors, settings: Any = None) -> nn.Module:
    """A new model by name. `settings` is its settings dataclass or a plain mapping; by default its defaults."""
    entry = MODELS.get(name)
    if settings is None or isinstance(settings, Mapping):
        settings = from_mapping(entry.settings, settings or {}, name)
    return entry.build(sizes, train, settings).to(train.device)


GROUP = "hynt.models"


def offered_models() -> Mapping[str, list[EntryPoint]]:
    """Every name that an installed package offers, without importing anything; two packages may offer one name."""
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point not in found.setdefault(point.name, []):
            found[point.name].append(point)
    return found


def _load_offered(name: str, kind: type[Any]) -> Any:
    """The entry that a package offers under `name`, of the type `kind`; whatever is wrong with it is a UsageError."""
    points = offered_models()[name]
    if len(points) > 1:
        packages = " and ".join(_package_of(point) for point in points)
        raise UsageError(f"the model {name!r} is offered by {packages}.", advice="Remove all of these but one.")
    (point,) = points
    advice = "Repair that package, or remove it."
    try:
        entry = point.load()
    except Exception as problem:  # whatever a package's import does is told as its own fault
        words = f"{type(problem).__name__}: {problem}"
        raise UsageError(
            f"the model {name!r} of {_package_of(point)} cannot be imported from {point.value}: {words}.", advice=advice
        ) from problem
    if not isinstance(entry, kind):
        found = type(entry).__name__
        raise UsageError(
            f"the model {name!r} of {_package_of(point)}, {point.value}, is not a {kind.__name__} but a {found}.",
            advice="Let the entry point name what hynt.models.registry.entry_of made.",
        )
    if not is_dataclass(entry.settings):
        raise UsageError(
            f"the settings of the model {name!r} of {_package_of(point)} are not a dataclass.", advice=advice
        )
    return entry


def _package_of(point: EntryPoint) -> str:
    distribution = point.dist
    return "a package without a name" if distribution is None else f"{distribution.name} {distribution.version}"
