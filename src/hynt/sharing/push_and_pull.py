"""From a run to a folder laid out as a repository of the Hugging Face hub, or to such a repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hynt.calibration.calibration import CALIBRATION
from hynt.errors import DataError, HyntError, UsageError
from hynt.files import new_folder, read_json, sha256_of, write_whole, writing
from hynt.models.contract import Part
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.opening import load_run
from hynt.runs.run_folder import ENVIRONMENT, GRAPH, RunFolder
from hynt.sharing.bundle import AGAIN, CARD, LIST, list_text, packed_names, read_list, surplus
from hynt.sharing.croissant import CROISSANT, croissant_text
from hynt.sharing.hub import HUB, Repository, download, upload
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
    if run.is_packaged:  # its graph lies beside it; a run that goes on a journey takes it along
        with tempfile.TemporaryDirectory(prefix="hynt-push-") as folder:
            copy = Path(folder) / "run"
            run.copy(copy)
            told = push(copy, destination, evaluation=evaluation, licence=licence, overwrite=overwrite, private=private)
            return {**told, "run": str(path)}
    if not run.is_finished:
        raise UsageError(
            "the run is not finished.", where=str(path), advice=f"Go on: hynt train GRAPH --out {path} --resume."
        )
    loaded = load_run(run)  # refuses a run with a changed file, or whose graph is another
    follows = Part.OBSERVED_FACTS in loaded.model.reads
    facts, names = card_facts(run, evaluation, licence, follows_its_graph=follows), packed_names(path)
    if destination.startswith(HUB):
        repository = Repository.of(destination)
        with tempfile.TemporaryDirectory(prefix="hynt-push-") as folder:
            beside = _fill(Path(folder), run, names, facts)
            upload(Path(folder), repository, [*names, *beside], private=private)
    else:
        beside = _to_folder(Path(destination), run, names, facts, overwrite=overwrite)
    return {
        "run": str(path),
        "destination": destination,
        "on_the_hub": destination.startswith(HUB),
        "files": [*names, *beside],
        "left_out": surplus(path),
        "licence": facts.licence or None,
        "graph_included": facts.graph is not None,
    }


def _to_folder(folder: Path, run: RunFolder, names: list[str], facts: CardFacts, *, overwrite: bool) -> list[str]:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", where="DEST", advice="Name a folder.")
    if run.path.resolve() == folder.resolve() or run.path.resolve() in folder.resolve().parents:
        raise UsageError("the destination lies in the run itself.", where="DEST", advice="Name another folder.")
    empty = not folder.exists() or not any(folder.iterdir())
    if not empty and not overwrite and not _is_bare_clone(folder):
        raise UsageError(f"{folder} is not empty.", where="DEST", advice="Say --overwrite, or name another folder.")
    with writing(folder, "the folder"):
        if empty:
            if folder.is_dir():
                folder.rmdir()
            with new_folder(folder) as staging:
                return _fill(staging, run, names, facts)
        return _refill(folder, run, names, facts)


def _is_bare_clone(folder: Path) -> bool:
    """A repository that was just cloned holds nothing of its own yet."""
    return all(path.name in (".git", ".gitattributes") for path in folder.iterdir())


def _refill(folder: Path, run: RunFolder, names: list[str], facts: CardFacts) -> list[str]:
    """Into a folder that is there, a clone say. The list goes first and comes last: halfway, nobody can pull it."""
    old: list[str] = []
    if (folder / LIST).exists():
        try:
            old = list(read_list(folder))
        except DataError:
            old = []  # damaged: what it listed stays, and is no longer part of the run
        (folder / LIST).unlink()
    for name in {*old, CROISSANT} - set(names):
        (folder / name).unlink(missing_ok=True)
    return _fill(folder, run, names, facts)


def _fill(folder: Path, run: RunFolder, names: list[str], facts: CardFacts) -> list[str]:
    """Writes everything, and says what is there beside the run's own files."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.path / name, folder / name)
    write_whole(folder / CARD, card_text(facts))
    if facts.graph is not None:
        write_whole(folder / CROISSANT, croissant_text(facts.graph, folder, GRAPH))
    write_whole(folder / LIST, list_text(folder, names))
    return [LIST, CARD, *([CROISSANT] if facts.graph is not None else [])]


# From a given-away run back to a run folder, equal to the byte, once every file is known to be the one listed.


def pull(source: str, out: Path) -> dict[str, Any]:
    """Takes a run; it appears at `out` whole and checked, or not at all."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already.", where="OUT", advice="Name a new folder.")
    if source.startswith(HUB):
        with tempfile.TemporaryDirectory(prefix="hynt-pull-") as folder:
            return _unpack(download(Repository.of(source), Path(folder)), source, out)
    if not Path(source).is_dir():
        raise UsageError(
            f"there is no folder {source!r}.",
            where="SOURCE",
            advice=f"A repository on the hub is written {HUB}owner/name.",
        )
    return _unpack(Path(source), source, out)


def _unpack(folder: Path, source: str, out: Path) -> dict[str, Any]:
    files = read_list(folder)
    if out.is_dir():
        out.rmdir()
    with new_folder(out) as staging:
        for name, digest in files.items():
            _take(folder, staging, name, digest)
        try:
            run, graph_included = _checked(staging)
        except HyntError as problem:
            where = problem.where.replace(str(staging), source)
            raise DataError(problem.what, where=where or source, advice=AGAIN) from None
        except (KeyError, TypeError, AttributeError):
            raise DataError("the manifest is not that of a run.", where=source, advice=AGAIN) from None
    return {
        "source": source,
        "run": str(out),
        "model": run.manifest["model_name"],
        "graph": run.manifest["graph"]["name"],
        "files": sorted(files),
        "passed_over": [name for name in surplus(folder) if name not in files],
        "graph_included": graph_included,
    }


def _take(folder: Path, staging: Path, name: str, digest: str) -> None:
    """Copied first and hashed after: what is checked is what is kept. A link may lead out of what was given away."""
    source, target = folder / name, staging / name
    if not source.exists():
        raise DataError("the file is missing.", where=str(source), advice=AGAIN)
    if source.resolve() != folder.resolve() / name or not source.is_file():
        raise DataError("this is a link, or no file at all.", where=str(source), advice="Put the file itself there.")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = source.open("rb")
    except OSError as problem:
        raise DataError(f"the file cannot be read: {problem.strerror}.", where=str(source), advice=AGAIN) from None
    with content, target.open("wb") as copy:
        shutil.copyfileobj(content, copy, 2**20)
    if sha256_of(target) != digest:
        raise DataError("the file was changed: its hash is not the listed one.", where=str(source), advice=AGAIN)


def _checked(folder: Path) -> tuple[RunFolder, bool]:
    """The run, after a trial of everything that would be refused later; and whether its graph came with it."""
    run = RunFolder.open(folder)
    run.settings()
    run.checked(WEIGHTS)
    for name in (ENVIRONMENT, CALIBRATION):
        if (folder / name).exists():
            read_json(folder / name)
    if run.manifest["graph"]["path"] != "graph":
        return run, False
    load_run(folder)
    return run, True
