"""A run's scoring model as an ONNX file, tried against torch before it is handed out.

The file holds weights and arithmetic, not names or scales: those are in the run (`graph/entities.parquet`,
`graph/relations.parquet`, `scaling.json`). Its metadata has the hashes that tell whether the two belong together.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hynt import __version__
from hynt.batches.buckets import BatchLayout, LayoutIndex, Span, layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, Task, mask
from hynt.errors import DataError, UsageError, needing
from hynt.files import whole_file
from hynt.graph.fact_table import component_count
from hynt.models.combination import TaskWeights
from hynt.models.contract import Candidates, Entities, Model, Position, Relations, ScaledNumber, position_of
from hynt.runs import WEIGHTS
from hynt.runs.opening import LoadedRun

MOST_QUALIFIERS = 16
"""By default the capacity is that of the graph's longest fact, up to this."""

EXPORTABLE = ("hynt", "gran", "hy-transformer", "frequency", "relation-mean", "relation-median")
"""Models whose scoring is one fixed computation. Others pick rows by what is asked, or score fact by fact."""

TOLERANCE = 1e-4
"""How far the file's scores may be from torch's, as a share of the largest score."""

_LARGEST = 2**31 - 2**26  # bytes: an ONNX file is one protocol buffer, which ends at 2 GiB
_ROWS_TRACED = 3


def export_onnx(loaded: LoadedRun, out: Path, capacity: int | None = None) -> dict[str, Any]:
    """Writes the file, whole or not at all, and says what it holds and how near to torch it is."""
    name = loaded.settings.model_name
    if name not in EXPORTABLE:
        raise UsageError(
            f"the model {name!r} cannot be written as ONNX; these can: {', '.join(EXPORTABLE)}.",
            where="--format",
            advice="Ask it through hynt itself: hynt predict, or hynt.load in Python.",
        )
    if isinstance(loaded.trained, TaskWeights):
        raise UsageError(
            "this run answers each task with weights of its own, and a file holds those of one model.",
            where="--format",
            advice="Train it with validation.each_task=false and the metric that counts.",
        )
    onnx, runtime = _libraries()
    capacity = capacity or default_capacity(loaded)
    weights = sum(tensor.nbytes for tensor in cast(nn.Module, loaded.trained).state_dict().values())
    if weights > _LARGEST:
        what = f"the weights have {weights:,} bytes, more than an ONNX file can hold."
        raise UsageError(what, where="--out", advice="Train a smaller model, or ask the run itself.")
    scoring = ScoringModule(loaded.trained, capacity).eval()
    questions = trial_questions(loaded, capacity)
    model = _traced(scoring, name, questions)
    about = metadata(loaded, capacity)
    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    with whole_file(out) as file:
        onnx.save_model(model, file)
        file.flush()
        far = _compared(runtime, Path(file.name), scoring, questions)
    return {
        "file": str(out),
        "bytes": out.stat().st_size,
        "model": name,
        "qualifiers": capacity,
        "inputs": [one.name for one in model.graph.input],
        "outputs": list(scoring.outputs),
        "questions_tried": len(questions.batch.asked),
        "largest_difference": far,
        "metadata": about,
    }


def default_capacity(loaded: LoadedRun) -> int:
    """The most qualifiers that a fact of the graph has, within reason."""
    longest = max(int(table.qualifier_counts().max(initial=0)) for table in loaded.graph.splits.values())
    return min(max(1, longest), MOST_QUALIFIERS)


def metadata(loaded: LoadedRun, capacity: int) -> dict[str, str]:
    """What stands in the file beside the arithmetic."""
    prints = loaded.run.manifest["graph"]["fingerprints"]
    sizes = loaded.trained.sizes
    return {
        "hynt.version": __version__,
        "hynt.model": loaded.settings.model_name,
        "hynt.graph": loaded.graph.name,
        "hynt.entities.sha256": prints["entities"],
        "hynt.relations.sha256": prints["relations"],
        "hynt.weights.sha256": loaded.run.manifest["files"].get(WEIGHTS, ""),
        "hynt.qualifiers": str(capacity),
        "hynt.hidden_entity": str(sizes.mask_entity),
        "hynt.hidden_relation": str(sizes.mask_relation),
        "hynt.answers": json.dumps(sorted(f"{OUTPUTS[task]}: {position}" for task, position in loaded.trained.answers)),
    }


def _traced(scoring: ScoringModule, model: str, questions: TrialQuestions) -> Any:
    """The program in ONNX's own form, with an open number of rows."""
    rows = torch.export.Dim("rows", min=1, max=2**20)
    examples = tuple(tensor[:_ROWS_TRACED] for tensor in Inputs.of(questions.batch))
    try:
        with _quiet(), torch.no_grad():
            exported = torch.export.export(
                scoring, examples, dynamic_shapes=(tuple({0: rows} for _ in examples),), strict=True
            )
            program = torch.onnx.export(
                exported,
                dynamo=True,
                verbose=False,
                input_names=list(Inputs._fields),
                output_names=list(scoring.outputs),
            )
            assert program is not None
            return program.model_proto
    except Exception as problem:  # the exporter fails in many ways, of which none is the caller's fault
        if os.environ.get("HYNT_DEBUG") == "1":
            raise
        words = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise DataError(
            f"torch could not write the model {model!r} as ONNX: {words}", advice="Please report it."
        ) from None


def _compared(runtime: Any, file: Path, scoring: ScoringModule, questions: TrialQuestions) -> dict[str, float]:
    """The largest difference to torch by output, over questions that the model answers; too large a one is refused."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    wanted = {one.name for one in session.get_inputs()}  # a part that the model does not read is no input
    given = {name: value.numpy() for name, value in Inputs.of(questions.batch)._asdict().items() if name in wanted}
    found = dict(zip(scoring.outputs, session.run(list(scoring.outputs), given), strict=True))
    far: dict[str, float] = {}
    for task, truth in questions.truth.items():
        rows = questions.rows[task]
        theirs, ours = found[OUTPUTS[task]][rows], truth
        if not np.isfinite(theirs).all():
            what = f"the exported model gives {OUTPUTS[task]} that are not finite numbers, so it is not kept."
            raise DataError(what, where=str(file), advice="Please report it.")
        far[OUTPUTS[task]] = float(np.abs(theirs - ours).max(initial=0.0))
        if far[OUTPUTS[task]] > TOLERANCE * max(1.0, float(np.abs(ours).max(initial=0.0))):
            what = f"{OUTPUTS[task]} of the exported model are up to {far[OUTPUTS[task]]:.2g} from torch's"
            raise DataError(f"{what}, so it is not kept.", where=str(file), advice="Please report it.")
    return far


def _libraries() -> tuple[Any, Any]:
    with needing("", "onnx", where="--format"):
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    return onnx, onnxruntime


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter speaks to its maintainers, on all channels there are."""
    noisy = [logging.getLogger(name) for name in ("torch.onnx", "torch", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in noisy]
    for logger in noisy:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(noisy, before, strict=True):
            logger.setLevel(level)


# Questions about real facts, with what torch answers: what an exported model is tried on.

CANDIDATES: dict[Task, Candidates] = {Task.LINK: Entities(), Task.RELATION: Relations(), Task.NUMBER: ScaledNumber()}
FACTS = 40
"""How many facts are asked about, in each of their components."""


@dataclass(frozen=True, eq=False)
class TrialQuestions:
    """Questions in one rectangle, and torch's answers."""

    batch: MaskedBatch
    rows: dict[Task, NDArray[np.int64]]  # which rows ask for what, of those that the model answers
    truth: dict[Task, NDArray[np.float32]]  # scores or numbers of these rows


def trial_questions(loaded: LoadedRun, capacity: int) -> TrialQuestions:
    """About facts of training, long ones first, that have at most `capacity` qualifiers."""
    table = loaded.graph.split("train")
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, "cpu", loaded.literals)
    counts = facts.qualifier_counts()
    fitting = torch.nonzero(counts <= capacity).squeeze(1)
    if not len(fitting):
        raise UsageError(f"no fact has {capacity} qualifiers or fewer.", where="--qualifiers", advice="Say more.")
    longest = fitting[counts[fitting].argsort(descending=True, stable=True)][: FACTS // 2]
    chosen = torch.cat([longest, fitting[: FACTS // 2]])
    length = component_count(counts[chosen])
    rows = torch.repeat_interleave(chosen, length)
    asked = torch.cat([torch.arange(int(n)) for n in length])
    batch, answers = mask(facts, rows, asked, layout_of([(len(rows), capacity)]))
    found, truth = _answered(loaded, batch, answers.task), {}
    with torch.no_grad():
        question = loaded.trained.read(batch)
        for task, candidates in CANDIDATES.items():
            if task in found:
                scores = loaded.trained.score(question, candidates).float().numpy()
                truth[task] = np.asarray(scores[found[task]])
    return TrialQuestions(batch, found, truth)


def _answered(loaded: LoadedRun, batch: MaskedBatch, tasks: torch.Tensor) -> dict[Task, NDArray[np.int64]]:
    positions = position_of(batch.asked)
    found: dict[Task, NDArray[np.int64]] = {}
    for task in Task:
        known = [list(Position).index(position) for answer, position in loaded.trained.answers if answer == task]
        which = (tasks == int(task)) & torch.isin(positions, torch.tensor(known, dtype=torch.int64))
        if known and bool(which.any()):
            found[task] = np.asarray(torch.nonzero(which).squeeze(1).numpy())
    return found


# A model as one map from plain tensors to scores, for exporters: the two calls of the contract in a single forward.
#
# Facts lie in one rectangle, (rows, capacity) for qualifiers, so that the number of rows can stay open in the exported
# program; the capacity is fixed when it is made.

OUTPUTS = {Task.LINK: "entity_scores", Task.RELATION: "relation_scores", Task.NUMBER: "number"}
"""What comes out, by what is asked."""


class Inputs(NamedTuple):
    """What goes in. Ids are the graph's; a masked component has the id for that, a masked number reads 0 and is
    marked.
    """

    head: Tensor  # (rows,) int64
    relation: Tensor  # (rows,) int64
    tail_entity: Tensor  # (rows,) int64; for a number its literal's id, if the model has any, or a masked entity's
    tail_number: Tensor  # (rows,) float32, scaled; 0 for an entity
    tail_is_number: Tensor  # (rows,) bool
    tail_number_hidden: Tensor  # (rows,) bool
    qualifier_relation: Tensor  # (rows, capacity) int64
    qualifier_entity: Tensor  # (rows, capacity) int64
    qualifier_number: Tensor  # (rows, capacity) float32
    qualifier_is_number: Tensor  # (rows, capacity) bool
    qualifier_number_hidden: Tensor  # (rows, capacity) bool
    qualifier_present: Tensor  # (rows, capacity) bool; false: there is no such qualifier
    asked: Tensor  # (rows,) int64: 0 head, 1 relation, 2 tail, 3 + 2i relation and 4 + 2i value of qualifier i

    @classmethod
    def of(cls, batch: MaskedBatch) -> Inputs:
        """From a batch whose layout is one segment."""
        ((rows, capacity),) = batch.layout.segments
        found = [getattr(batch, name.replace("_hidden", "_masked")) for name in cls._fields]
        slots = [name.startswith("qualifier_") for name in cls._fields]
        return cls(*(one.view(rows, capacity) if slot else one for one, slot in zip(found, slots, strict=True)))


class _Rectangle:
    """A layout of one segment with an open number of rows. Its only span is everything, without any arithmetic on the
    number of rows, which the exporter would take for a constant.
    """

    def __init__(self, rows: int, capacity: int) -> None:
        self.rows, self.capacity = rows, capacity
        self.slots, self.tokens = rows * capacity, rows * (1 + capacity)
        self.segments = ((rows, capacity),)

    def spans(self) -> tuple[Span, ...]:
        """One span over all rows: they all have `capacity` places for qualifiers."""
        return (Span(slice(None), slice(None), slice(None), self.rows, self.capacity),)


class ScoringModule(nn.Module):
    """Scores of all entities, scores of all relations and the number, as far as the model answers them."""

    def __init__(self, model: Model, capacity: int) -> None:
        super().__init__()
        self.model, self.capacity = model, capacity
        tasks = {task for task, _ in model.answers}
        self.tasks = tuple(task for task in OUTPUTS if task in tasks)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what comes out, in order."""
        return tuple(OUTPUTS[task] for task in self.tasks)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """`tensors` are the fields of `Inputs`, in order."""
        given = Inputs(*tensors)
        question = self.model.read(self._batch(given))
        return tuple(self.model.score(question, CANDIDATES[task]) for task in self.tasks)

    def _batch(self, given: Inputs) -> MaskedBatch:
        count, capacity = given.head.shape[0], self.capacity
        rows = torch.arange(count, device=given.head.device)
        within = torch.arange(capacity, device=given.head.device)
        places = LayoutIndex(
            rows.unsqueeze(1).expand(count, capacity).reshape(-1),
            within.expand(count, capacity).reshape(-1),
            rows * capacity,
            rows * (1 + capacity),
        )
        layout = cast(BatchLayout, _Rectangle(count, capacity))
        fields = {
            name.replace("_hidden", "_masked"): one.reshape(-1) if name.startswith("qualifier_") else one
            for name, one in zip(Inputs._fields, given, strict=True)
        }
        for name in ("tail_number", "qualifier_number"):  # values that nothing that is exported reads
            fields[name.replace("number", "value")] = torch.zeros_like(fields[name], dtype=torch.float64)
        return MaskedBatch(self.model.sizes, layout, places, **fields)
