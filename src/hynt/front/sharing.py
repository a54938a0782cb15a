"""Runs given away, and taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hynt.asking.predictor import Predictor
from hynt.files import check_new_folder
from hynt.front.run import Run


def push(
    run: Run | str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    evaluation: str | os.PathLike[str] | None = None,
    licence: str = "",
    overwrite: bool = False,
    public: bool = False,
) -> dict[str, Any]:
    """Gives a finished run away with a model card made from it: to a folder, or to "hf:owner/name" on the hub.

    `evaluation` is a file that `hynt evaluate --save` wrote; `licence` is the model's, else the graph's. Weights are
    safetensors; nothing is a pickle.

    >>> told = hynt.push(run, "given")
    >>> told["graph_included"], "README.md" in told["files"]
    (True, True)
    """
    from hynt.runs.place import whole_run
    from hynt.sharing.push_and_pull import push as give

    path = run.path if isinstance(run, Predictor) else Path(run)
    card = None if evaluation is None else Path(evaluation)
    with whole_run():
        return give(
            path, os.fspath(destination), evaluation=card, licence=licence, overwrite=overwrite, private=not public
        )


def pull(source: str | os.PathLike[str], out: str | os.PathLike[str], device: str = "auto") -> Run:
    """Takes a run that was given away: from a folder, or from "hf:owner/name" on the hub. Each file is checked by its
    hash first; files that no run has are passed over.

    >>> _ = hynt.push(run, "given")
    >>> hynt.pull("given", "taken").predict("Japan", "capital", "?").kind
    'entity'
    """
    pulled(source, out)
    return Run(out, device)


def pulled(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> dict[str, Any]:
    """The same, with what came of each file."""
    from hynt.sharing.push_and_pull import pull as take

    check_new_folder(Path(out), "OUT")
    return take(os.fspath(source), Path(out))
