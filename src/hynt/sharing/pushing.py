"""From a run to a folder laid out as a repository of the Hugging Face hub, or to such a repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.runs.hashed_files import new_folder, write_atomically
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.sharing.bundle import CARD, LIST, list_text, packed_names, read_list, surplus
from hynt.sharing.hub import HUB, Repository, upload
from hynt.sharing.model_card import CardFacts, card_facts, card_text


def push(
    path: Path,
    destination: str,
    *,
    evaluation: Path | None = None,
    licence: str = "",
    overwrite: bool = False,
    private: bool = True,
) -> dict[str, Any]:
    """Gives a finished run away. Every file is checked first, so that nothing damaged is passed on."""
    run = RunFolder.open(path)
    if not run.is_finished:
        raise UsageError(
            "the run is not finished.", where=str(path), advice=f"Go on: hynt train GRAPH --out {path} --resume."
        )
    load_run(path)  # refuses a run with a changed file, or whose graph is another
    facts, names = card_facts(run, evaluation, licence), packed_names(path)
    if destination.startswith(HUB):
        repository = Repository.of(destination)
        with tempfile.TemporaryDirectory(prefix="hynt-push-") as folder:
            _fill(Path(folder), run, names, facts)
            upload(Path(folder), repository, names, private=private)
    else:
        _to_folder(Path(destination), run, names, facts, overwrite=overwrite)
    return {
        "run": str(path),
        "destination": destination,
        "files": [*names, LIST, CARD],
        "left_out": surplus(path),
        "licence": facts.licence or None,
        "graph_included": facts.graph is not None,
    }


def _to_folder(folder: Path, run: RunFolder, names: list[str], facts: CardFacts, *, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", where="DEST", advice="Name a folder.")
    if run.path.resolve() == folder.resolve() or run.path.resolve() in folder.resolve().parents:
        raise UsageError("the destination lies in the run itself.", where="DEST", advice="Name another folder.")
    empty = not folder.exists() or not any(folder.iterdir())
    try:
        if empty:
            if folder.is_dir():
                folder.rmdir()
            with new_folder(folder) as staging:
                _fill(staging, run, names, facts)
            return
        if not overwrite and not _is_bare_clone(folder):
            raise UsageError(f"{folder} is not empty.", where="DEST", advice="Say --overwrite, or name another folder.")
        _refill(folder, run, names, facts)
    except OSError as problem:
        raise DataError(f"the folder cannot be written: {problem.strerror}.", where=str(folder)) from None


def _is_bare_clone(folder: Path) -> bool:
    """A repository that was just cloned holds nothing of its own yet."""
    return all(path.name in (".git", ".gitattributes") for path in folder.iterdir())


def _refill(folder: Path, run: RunFolder, names: list[str], facts: CardFacts) -> None:
    """Into a folder that is there, a clone say. The list goes first and comes last: halfway, nobody can pull it."""
    old: list[str] = []
    if (folder / LIST).exists():
        try:
            old = list(read_list(folder))
        except DataError:
            old = []  # damaged: what it listed stays, and is no longer part of the run
        (folder / LIST).unlink()
    for name in set(old) - set(names):
        (folder / name).unlink(missing_ok=True)
    _fill(folder, run, names, facts)


def _fill(folder: Path, run: RunFolder, names: list[str], facts: CardFacts) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.path / name, folder / name)
    write_atomically(folder / CARD, card_text(facts))
    write_atomically(folder / LIST, list_text(folder, names))
