"""Files and folders that are there whole or not at all, known by their hashes, and the folder of a long job.

What is written gets a hidden name beside its place, is flushed to disk and renamed, so that a kill at any moment leaves
the old state or the new one. An index lists the SHA-256 of each file and holds the hash of its own text: a changed byte
anywhere is found before anything is used. This guards against damage and slips; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hynt.errors import DataError, UsageError
from hynt.leftovers import A_DAY, OLD, PARTIAL, clean, discard, exchange, lock, recover, remove
from hynt.limits import LARGEST_INDEX

MANIFEST_NAME = "manifest.json"
RESTORE = "Restore it from a copy, or train again."
_ELSEWHERE = "Choose another place."
_ROOM = "Make room, or choose another place."


# Places, tried before a long job and not after it.


def check_place(path: Path, option: str) -> None:
    """Refuse a place that no file can be written to."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", where=option, advice="Give the name of a file.")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}.", where=option, advice="Make it first.")
    _check_rights(path.parent, option)


def check_parquet(path: Path, option: str) -> None:
    """Refuse a place where no Parquet file can be written, or a name that promises another format."""
    check_place(path, option)
    if path.suffix.lower() in (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx"):
        raise UsageError(
            f"{path} would hold Parquet under the name of another format.",
            where=option,
            advice=f"Name it {path.with_suffix('.parquet').name}; pandas, polars and DuckDB read it.",
        )


def check_new_folder(path: Path, option: str) -> None:
    """Refuse a folder that cannot be made; folders above it may be missing."""
    try:
        above = next(folder for folder in path.absolute().parents if folder.exists())
    except OSError as problem:
        raise _nothing_there(path, option, problem) from None
    if not above.is_dir():
        raise UsageError(f"{above} is a file, so no folder can be made in it.", where=option, advice=_ELSEWHERE)
    _check_rights(above, option)


def _check_rights(folder: Path, option: str) -> None:
    """By trying: what is written on paper (modes, owners) is not all that decides."""
    try:
        tempfile.TemporaryFile(prefix=".hynt-", dir=folder).close()
    except OSError as problem:
        raise _nothing_there(folder, option, problem) from None


def _nothing_there(folder: Path, option: str, problem: OSError) -> UsageError:
    return UsageError(f"nothing can be written in {folder}: {_reason(problem)}.", where=option, advice=_ELSEWHERE)


# Writing.


class Unwritable(DataError):
    """The system refused to write: the disk is full, say, or may only be read."""

    reason = ""


@contextmanager
def writing(path: Path, what: str, advice: str = _ROOM) -> Iterator[None]:
    """Within the block, what the system refuses is `Unwritable`: `what` cannot be written."""
    try:
        yield
    except (OSError, Unwritable) as problem:
        found = problem.reason if isinstance(problem, Unwritable) else _reason(problem)
        refused = Unwritable(f"{what} cannot be written: {found}.", where=str(path), advice=advice)
        refused.reason = found
        raise refused from None


def _reason(problem: OSError) -> str:
    """In the system's words; of a copy, which tells of each file in a text, why the first was refused."""
    number = problem.errno or next((int(one) for one in re.findall(r"\[Errno (\d+)\]", str(problem))), 0)
    return os.strerror(number) if number else str(problem)


@contextmanager
def whole_file(path: Path, advice: str = _ROOM) -> Iterator[IO[bytes]]:
    """A file to fill, which takes its name when the block ends well and is gone when it does not."""
    hidden, folder = f"{PARTIAL}{path.name}-", path.parent
    with (
        writing(path, "the file", advice),
        tempfile.NamedTemporaryFile(prefix=hidden, dir=folder, delete=False) as file,
    ):
        partial = Path(file.name)
        lock(file.fileno())
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.chmod(0o644)
            partial.replace(path)
            flush(folder)
        finally:
            partial.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file all at once; text becomes UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def new_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes its name when the block ends well and is gone when it does not.

    What is there already is refused, or kept until then and replaced. What a killed process left under the same name is
    removed after a day.
    """
    recover(folder)
    if not overwrite and (folder.exists() or folder.is_symlink()):
        raise DataError("already exists.", where=str(folder), advice="Choose a new name, or remove it first.")
    with writing(folder, "the folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        clean(folder.parent, A_DAY, folder.name)
        staging = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{folder.name}-", dir=folder.parent))
        held = os.open(staging, os.O_RDONLY)
        lock(held)
        try:
            yield staging
            for path in staging.rglob("*"):
                flush(path)
            staging.chmod(0o755)
            flush(staging)
            _publish(staging, folder, overwrite)
            flush(folder.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            os.close(held)


def _publish(staging: Path, folder: Path, overwrite: bool) -> None:
    """Give a finished folder its name, by renames alone. The old one is in `staging` then, or gone."""
    if not overwrite or not folder.exists():
        staging.replace(folder)
        return
    if exchange(staging, folder):
        return
    old = Path(tempfile.mkdtemp(prefix=f"{OLD}{folder.name}-", dir=folder.parent))
    try:
        folder.replace(old / "was")
        staging.replace(folder)
    except BaseException:  # an interrupt too: what was there stays there
        if (old / "was").exists() and not folder.exists():
            (old / "was").replace(folder)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_partial(folder: Path) -> None:
    """Remove what a killed process left half written, at any depth."""
    for path in list(folder.rglob(f"{PARTIAL}*")):
        remove(path)


# Hashes, and indexes of them.


def check_regular(path: Path) -> None:
    """Refuses what is no file though it can be opened: a pipe keeps its reader waiting, a device never ends."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder says so itself, when it is opened
        raise DataError("is not a regular file.", where=str(path), advice=RESTORE)


def sha256_of(path: Path, advice: str = RESTORE) -> str:
    """The hash of a file's bytes."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError("the file is missing.", where=str(path), advice=advice) from None
    except OSError as problem:
        raise DataError(f"the file cannot be read: {problem.strerror}.", where=str(path), advice=advice) from None


def hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The hash of each named file, for the manifest."""
    return {name: sha256_of(folder / name) for name in names}


def check_hash(folder: Path, name: str, files: Mapping[str, str], advice: str = RESTORE) -> Path:
    """The path of a file that is the one the manifest means; else a `DataError` that names it."""
    path = folder / name
    if name not in files:
        raise DataError(f"the manifest does not list {name}.", where=str(folder / MANIFEST_NAME), advice=advice)
    if sha256_of(path, advice) != files[name]:
        raise DataError("the file was changed: its hash is not the manifest's.", where=str(path), advice=advice)
    return path


def index_text(content: Mapping[str, Any]) -> str:
    """JSON that carries the hash of itself."""
    return json.dumps({**content, "sha256": _digest(content)}, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def read_index(path: Path) -> dict[str, Any]:
    """What `index_text` wrote; refused when it is missing, damaged or changed."""
    content = read_json(path)
    if content.pop("sha256", None) != _digest(content):
        raise DataError("the file was changed: it does not match its own hash.", where=str(path), advice=RESTORE)
    return content


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; refused when it is missing, damaged, nested without end or larger than hynt would write it."""
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST_INDEX:
            raise DataError("the file is larger than hynt would write it.", where=str(path), advice=RESTORE)
        content = json.loads(path.read_bytes())
        json.dumps(content)  # refuses what is too deep to be written again, for its hash or for a message
    except FileNotFoundError:
        raise DataError("the file is missing.", where=str(path), advice=RESTORE) from None
    except (OSError, ValueError, RecursionError):
        raise DataError("the file is damaged.", where=str(path), advice=RESTORE) from None
    if not isinstance(content, dict):
        raise DataError("the file is damaged.", where=str(path), advice=RESTORE)
    return content


def _digest(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


# The work of a long job, kept so that one that was stopped goes on where it was.

PLAN = "plan.json"
_SHOWN = 80


class WorkFolder:
    """A plan, which says what the job is, and the parts that are done:

        WORK/plan.json            another job is refused
             NAME.json            a part: what there is to say of it, and the hash of each of its files
             NAME.parquet, …      its files, which are written before

    A part is done when its record is there and its files are the ones it lists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_begun(self, plan: Mapping[str, Any]) -> bool:
        """Whether this job was begun here. Another one, or a folder of something else, is refused."""
        if not self.path.exists():
            return False
        if not (self.path / PLAN).is_file():
            if self.path.is_dir() and all(path.name.startswith(PARTIAL) for path in self.path.iterdir()):
                return False  # empty, or killed before anything was done
            what = "this holds something other than the work of a job."
            raise UsageError(what, where=str(self.path), advice="Choose another folder.")
        try:
            found = read_index(self.path / PLAN)
        except DataError as problem:
            raise UsageError(problem.what, where=problem.where, advice="Remove its folder to begin anew.") from None
        changed = changes(found, json.loads(json.dumps(plan)))
        if changed:
            what = f"the work begun here is that of another job: {'; '.join(changed)}."
            advice = "Ask for the same as before to go on with it, or remove this folder to begin anew."
            raise UsageError(what, where=str(self.path), advice=advice)
        return True

    def open(self, plan: Mapping[str, Any]) -> None:
        """Begin the job, or take it up where it was stopped."""
        with writing(self.path, "the work folder"):
            if not self.is_begun(plan):
                self.path.mkdir(parents=True, exist_ok=True)
                write_whole(self.path / PLAN, index_text(plan))
            remove_partial(self.path)

    def file(self, part: str, ending: str) -> Path:
        """Where a file of a part is, or is to be written."""
        return self.path / f"{part}.{ending}"

    def keep(self, part: str, content: Mapping[str, Any], endings: Iterable[str] = ()) -> None:
        """Say that a part is done, whose files are written."""
        files = {ending: sha256_of(self.file(part, ending)) for ending in endings}
        text = index_text({**content, "files": files})
        write_whole(self.file(part, "json"), text.encode("utf-8", "surrogatepass"))  # it may quote damaged data

    def kept(self, part: str) -> dict[str, Any] | None:
        """What was said of a part; None where it is still to do, or to do again because it was damaged."""
        try:
            content = read_index(self.file(part, "json"))
            files = content["files"]
            whole = all(sha256_of(self.file(part, ending)) == digest for ending, digest in files.items())
        except (DataError, KeyError, AttributeError):
            return None
        return content if whole else None

    def remove(self) -> None:
        """Take the folder away, once the result is written."""
        discard(self.path)


def changes(old: Any, new: Any, path: str = "") -> list[str]:
    """Where two contents of JSON differ, `schedule.epochs: 350 → 700`; the values themselves where they are short."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        pairs = [(old.get(name), new.get(name), f"{path}.{name}" if path else name) for name in names]
        return [line for pair in pairs for line in changes(*pair)]
    if old == new:
        return []
    was, now = ("none" if value is None else str(value) for value in (old, new))
    return [f"{path}: {was} → {now}" if len(was + now) < _SHOWN else f"{path} changed"]


def clean_all(folder: Path) -> list[Path]:
    """Removes what killed processes left in a folder, and in the graphs and runs that lie there."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}.", where="folder", advice="Name one that is there.")
    gone = clean(folder)
    ours = [path.parent for pattern in ("", "[!.]*/") for path in folder.glob(f"{pattern}{MANIFEST_NAME}")]
    for place in [inner for one in ours for inner in (one, *one.rglob("*"))]:
        gone += clean(place) if place.is_dir() and not place.is_symlink() else []
    return gone
