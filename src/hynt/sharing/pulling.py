"""From a given-away run back to a run folder, equal to the byte, once every file is known to be the one listed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hynt.errors import DataError, HyntError, UsageError
from hynt.runs.checkpoint import WEIGHTS
from hynt.runs.hashed_files import new_folder, sha256_of
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.sharing.bundle import AGAIN, read_list, surplus
from hynt.sharing.hub import HUB, Repository, download


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
            _take(folder / name, staging / name, digest)
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


def _take(source: Path, target: Path, digest: str) -> None:
    """Copied first and hashed after: what is checked is what is kept."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise DataError("the file is missing.", where=str(source), advice=AGAIN) from None
    except OSError as problem:
        raise DataError(f"the file cannot be read: {problem.strerror}.", where=str(source), advice=AGAIN) from None
    if sha256_of(target) != digest:
        raise DataError("the file was changed: its hash is not the listed one.", where=str(source), advice=AGAIN)


def _checked(folder: Path) -> tuple[RunFolder, bool]:
    """The run, after a trial of everything that would be refused later; and whether its graph came with it."""
    run = RunFolder.open(folder)
    run.settings()
    run.checked(WEIGHTS)
    if run.manifest["graph"]["path"] != "graph":
        return run, False
    load_run(folder)
    return run, True
