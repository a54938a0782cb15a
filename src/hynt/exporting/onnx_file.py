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
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hynt import __version__
from hynt.errors import DataError, UsageError
from hynt.exporting.scoring_module import OUTPUTS, Inputs, ScoringModule
from hynt.exporting.trial_questions import TrialQuestions, trial_questions
from hynt.runs.hashed_files import flush
from hynt.runs.opening import LoadedRun

INSTALL = "Install it with: pip install 'hynt[onnx]'."
MOST_QUALIFIERS = 16
"""The capacity unless told otherwise is the graph's longest fact, up to this."""

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
    onnx, runtime = _libraries()
    capacity = capacity or default_capacity(loaded)
    weights = sum(tensor.nbytes for tensor in _module(loaded).state_dict().values())
    if weights > _LARGEST:
        raise UsageError(f"the weights have {weights:,} bytes, more than an ONNX file can hold.", where="--out")
    scoring = ScoringModule(loaded.model, capacity).eval()
    questions = trial_questions(loaded, capacity)
    model = _traced(scoring, name, questions)
    about = metadata(loaded, capacity)
    handle, partial = tempfile.mkstemp(prefix=f".{out.name}.partial-", dir=out.parent)
    os.close(handle)
    staged = Path(partial)
    try:
        onnx.helper.set_model_props(model, about)
        onnx.checker.check_model(model)
        onnx.save_model(model, str(staged))
        far = _compared(runtime, staged, scoring, questions)
        flush(staged)
        staged.chmod(0o644)
        staged.replace(out)
    finally:
        staged.unlink(missing_ok=True)
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
    sizes = loaded.model.sizes
    return {
        "hynt.version": __version__,
        "hynt.model": loaded.settings.model_name,
        "hynt.graph": loaded.graph.name,
        "hynt.entities.sha256": prints["entities"],
        "hynt.relations.sha256": prints["relations"],
        "hynt.weights.sha256": loaded.run.manifest["files"].get("weights.safetensors", ""),
        "hynt.qualifiers": str(capacity),
        "hynt.hidden_entity": str(sizes.hidden_entity),
        "hynt.hidden_relation": str(sizes.hidden_relation),
        "hynt.answers": json.dumps(sorted(f"{OUTPUTS[task]}: {position}" for task, position in loaded.model.answers)),
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
            raise DataError(f"the exported model gives {OUTPUTS[task]} that are no finite numbers.", where=str(file))
        far[OUTPUTS[task]] = float(np.abs(theirs - ours).max(initial=0.0))
        if far[OUTPUTS[task]] > TOLERANCE * max(1.0, float(np.abs(ours).max(initial=0.0))):
            what = f"{OUTPUTS[task]} of the exported model are up to {far[OUTPUTS[task]]:.2g} from torch's"
            raise DataError(f"{what}, so it is not kept.", where=str(file), advice="Please report it.")
    return far


def _module(loaded: LoadedRun) -> nn.Module:
    model: Any = loaded.model
    assert isinstance(model, nn.Module)
    return model


def _libraries() -> tuple[Any, Any]:
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError as problem:
        raise UsageError(f"{problem.name} is not installed.", where="--format", advice=INSTALL) from None
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
