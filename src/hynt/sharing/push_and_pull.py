"""From a run to a folder laid out as a repository of the Hugging Face hub, or to such a repository, and back.

The list of a given-away run's files and their hashes goes with them, as `hynt-run.json`. Only names that hynt itself
gives to files of a run are ever packed or unpacked. A file beyond them, a script or a pickle say, is passed over and
named; a list that asks for one is refused.

The hub is spoken to by its own library, which is an extra. Its token is the library's business: HF_TOKEN or
`hf auth login`; hynt never sees it.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hynt.asking.examples import EXAMPLES
from hynt.batches.masked_batch import Task
from hynt.calibration.calibration import CALIBRATION
from hynt.errors import DataError, HyntError, UsageError, needing
from hynt.files import (
    MANIFEST_NAME,
    hashes,
    index_text,
    new_folder,
    read_index,
    read_json,
    sha256_of,
    write_whole,
    writing,
)
from hynt.graph.splitting import SPLITS
from hynt.models.contract import Part
from hynt.runs import CONFIG, READS, RECORD, SCALING, WEIGHTS
from hynt.runs.checkpoint import task_weights
from hynt.runs.elsewhere import on_graph
from hynt.runs.journal import JOURNAL, LOCK, UPDATES, Journal
from hynt.runs.opening import load_run
from hynt.runs.run_folder import COMBINATION, ENVIRONMENT, GRAPH, MEANS, MEMBERS, RunFolder
from hynt.sharing.cards import CROISSANT, CardFacts, card_facts, card_text, croissant_text

LIST, CARD = "hynt-run.json", "README.md"
NEEDED = (MANIFEST_NAME, CONFIG, SCALING, ENVIRONMENT, WEIGHTS)
NAMES = (
    *NEEDED,
    RECORD,
    READS,
    CALIBRATION,
    EXAMPLES,
    *(task_weights(task.name.lower()) for task in Task),
    COMBINATION,
    MEMBERS,
    MEANS,
    *(f"{GRAPH}/{name}" for name in (MANIFEST_NAME, "entities.parquet", "relations.parquet")),
    *(f"{GRAPH}/{split}.parquet" for split in SPLITS),
)
"""The files that a run can have, by their path in the run; updates of its graph come to them."""

_UPDATE = re.compile(rf"{UPDATES}/(?:{re.escape(JOURNAL)}|[0-9]{{6,9}}\.jsonl)\Z")
_UPDATE_PATTERNS = (f"{UPDATES}/{JOURNAL}", *(f"{UPDATES}/{'[0-9]' * digits}.jsonl" for digits in range(6, 10)))
"""The same, as the hub's library takes them."""

AGAIN = "Get it again from where it came, or ask whoever made it."
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def surplus(folder: Path) -> list[str]:
    """Files that are not a run's, by their path; what a repository itself needs is not counted."""
    ours = (*NAMES, LIST, CARD, CROISSANT, f"{UPDATES}/{LOCK}")
    return sorted(name for name in _paths(folder) if name not in ours and not _UPDATE.match(name))


def _paths(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        is_repository = any(part.startswith(".git") or part == ".cache" for part in relative.parts)
        if not path.is_dir() and not is_repository:
            yield relative.as_posix()


def list_text(run: Path, names: list[str]) -> str:
    """The list of files, which carries its own hash."""
    return index_text({"kind": "hynt run", "files": hashes(run, names)})


def read_list(folder: Path) -> dict[str, str]:
    """The hash of each file of a given-away run; refused when it names anything that is not a run's."""
    path = folder / LIST
    if not path.exists():
        raise DataError(
            "this is not a run that was given away: it has no list of files.",
            where=str(path),
            advice="Make one with: hynt push RUN DEST.",
        )
    try:
        content: Mapping[str, Any] = read_index(path)
    except DataError as problem:
        raise DataError(problem.what, where=problem.where, advice=AGAIN) from None
    files = content.get("files")
    if content.get("kind") != "hynt run" or not isinstance(files, dict):
        raise DataError("the list of files is not one of hynt's.", where=str(path), advice=AGAIN)
    for name, digest in files.items():
        is_known = name in NAMES or _UPDATE.match(name)
        if not is_known or not isinstance(digest, str) or not _HASH.match(digest):
            raise DataError(f"the list holds {name!r}, which is not a file of a run.", where=str(path), advice=AGAIN)
    for name in NEEDED:
        if name not in files:
            raise DataError(f"the list lacks {name}, which every run has.", where=str(path), advice=AGAIN)
    return dict(files)


HUB = "hf:"
_REPOSITORY = re.compile(r"hf:(?://)?(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?\Z", re.ASCII)


@dataclass(frozen=True)
class Repository:
    """`hf:owner/name`, or `hf:owner/name@revision`."""

    name: str
    revision: str | None = None

    @classmethod
    def of(cls, text: str) -> Repository:
        """Read as it is written on the command line."""
        found = _REPOSITORY.match(text)
        if found is None:
            advice = f"Write {HUB}owner/name, or {HUB}owner/name@revision."
            raise UsageError(f"{text!r} is not a repository on the hub.", advice=advice)
        return cls(found["name"], found["revision"])


def upload(folder: Path, repository: Repository, names: list[str], *, private: bool) -> None:
    """One commit with all files. What an earlier push left and this run lacks is removed; other files stay."""
    hub = _library()
    stale = [*(name for name in (*NAMES, CROISSANT) if name not in names), *_UPDATE_PATTERNS]
    try:
        api = hub.HfApi()
        api.create_repo(repository.name, private=private, repo_type="model", exist_ok=True)
        with warnings.catch_warnings():
            # A run has its graph with it, which is what the library wonders about.
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file", UserWarning)
            api.upload_folder(
                repo_id=repository.name,
                folder_path=folder,
                repo_type="model",
                revision=repository.revision,
                commit_message="Push a run",
                delete_patterns=stale,
            )
    except _failures(hub) as problem:
        raise _refused(problem, repository) from None


def download(repository: Repository, folder: Path) -> Path:
    """The files of a run, and no others: a script or a pickle in the repository never reaches this machine."""
    hub = _library()
    try:
        hub.HfApi().snapshot_download(
            repository.name,
            repo_type="model",
            revision=repository.revision,
            local_dir=folder,
            allow_patterns=[LIST, CARD, CROISSANT, *NAMES, *_UPDATE_PATTERNS],
        )
    except _failures(hub) as problem:
        raise _refused(problem, repository) from None
    return folder


def _library() -> Any:
    with needing("huggingface_hub", "hub"):
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    library: Any = huggingface_hub
    if not sys.stderr.isatty():
        library.utils.disable_progress_bars()
    return library


def _failures(hub: Any) -> tuple[type[Exception], ...]:
    """What the library raises when something outside goes wrong. What its HTTP client says of a broken connection it
    passes on as it is; the client's name has changed over the years.
    """
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    of_connections = [client.HTTPError for client in clients]
    own = (hub.errors.HfHubHTTPError, hub.errors.HFValidationError)
    return (*own, *of_connections, OSError, ValueError, RuntimeError)


def _refused(problem: Exception, repository: Repository) -> DataError:
    causes = [problem, *([problem.__cause__] if problem.__cause__ is not None else [])]
    told = ((str(cause).strip() or type(cause).__name__).splitlines()[0] for cause in causes)
    words = " ".join(dict.fromkeys(told))
    return DataError(
        f"the hub did not do it: {words}",
        where=f"{HUB}{repository.name}",
        advice="Check the name, your access (hf auth login) and the network.",
    )


@dataclass(frozen=True)
class Bundle:
    """What is given away of a run, settled before anything is written."""

    run: RunFolder
    names: list[str]
    journal: bytes  # of the updates that go with it; another process may write more of them meanwhile
    facts: CardFacts

    @classmethod
    def of(cls, run: RunFolder, version: int | None, evaluation: Path | None, licence: str) -> Bundle:
        """A run that is whole, with the updates up to a version, or all."""
        journal = Journal(run.path)
        content, files = journal.written(version)
        loaded = load_run(run)  # refuses a run with a changed file, or whose graph is another
        journal.graph(loaded.graph, len(files))  # and updates that do not fit it
        follows = Part.OBSERVED_FACTS in loaded.model.reads
        names = [name for name in NAMES if (run.path / name).is_file()]
        names += [f"{UPDATES}/{name}" for name in (JOURNAL, *files)] if files else []
        versions = journal.versions()[: len(files)]
        facts = card_facts(run, evaluation, licence, versions, follows_its_graph=follows)
        return cls(run, names, content, facts)

    def fill(self, folder: Path) -> list[str]:
        """Writes everything, and says what is there beside the run's own files."""
        for name in self.names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name == f"{UPDATES}/{JOURNAL}":
                (folder / name).write_bytes(self.journal)
            else:
                shutil.copyfile(self.run.path / name, folder / name)
        write_whole(folder / CARD, card_text(self.facts))
        if self.facts.graph is not None:
            write_whole(folder / CROISSANT, croissant_text(self.facts.graph, folder, GRAPH))
        write_whole(folder / LIST, list_text(folder, self.names))
        return [LIST, CARD, *([CROISSANT] if self.facts.graph is not None else [])]

    def refill(self, folder: Path) -> list[str]:
        """Into a folder that exists, such as a clone. The list is removed first and written last: half a run cannot be
        pulled.
        """
        old: list[str] = []
        if (folder / LIST).exists():
            try:
                old = list(read_list(folder))
            except DataError:
                old = []  # damaged: what it listed stays, and is no longer part of the run
            (folder / LIST).unlink()
        for name in {*old, CROISSANT} - set(self.names):
            (folder / name).unlink(missing_ok=True)
        return self.fill(folder)


def push(
    path: Path,
    destination: str,
    *,
    evaluation: Path | None = None,
    licence: str = "",
    version: int | None = None,
    overwrite: bool = False,
    private: bool = True,
) -> dict[str, Any]:
    """Gives a finished run away, with the updates of its graph up to a version, or all. Every file is checked first, so
    that nothing damaged is passed on.
    """
    run = RunFolder.open(path)
    if run.is_packaged:  # its graph lies beside it; a run that goes on a journey takes it along
        with tempfile.TemporaryDirectory(prefix="hynt-push-") as folder:
            copy = Path(folder) / "run"
            run.copy(copy)
            told = push(
                copy,
                destination,
                evaluation=evaluation,
                licence=licence,
                version=version,
                overwrite=overwrite,
                private=private,
            )
            return {**told, "run": str(path)}
    if not run.is_finished:
        raise UsageError(
            "the run is not finished.", where=str(path), advice=f"Go on: hynt train GRAPH --out {path} --resume."
        )
    bundle = Bundle.of(run, version, evaluation, licence)
    names, facts = bundle.names, bundle.facts
    if destination.startswith(HUB):
        repository = Repository.of(destination)
        with tempfile.TemporaryDirectory(prefix="hynt-push-") as folder:
            beside = bundle.fill(Path(folder))
            upload(Path(folder), repository, [*names, *beside], private=private)
    else:
        beside = _to_folder(Path(destination), bundle, overwrite=overwrite)
    updates = len(facts.versions)
    return {
        "run": str(path),
        "destination": destination,
        "on_the_hub": destination.startswith(HUB),
        "files": [*names, *beside],
        "left_out": surplus(path),
        "updates": updates,
        "updates_left_out": Journal(path).latest() - updates,
        "licence": facts.licence or None,
        "graph_included": facts.graph is not None,
    }


def _to_folder(folder: Path, bundle: Bundle, *, overwrite: bool) -> list[str]:
    run = bundle.run
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
                return bundle.fill(staging)
        return bundle.refill(folder)


def _is_bare_clone(folder: Path) -> bool:
    """A repository that was just cloned holds nothing of its own yet."""
    return all(path.name in (".git", ".gitattributes") for path in folder.iterdir())


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
        "updates": Journal(out).latest(),
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
    journal = Journal(folder)
    _refuse_other_updates(journal)
    versions = journal.versions()
    if run.manifest["graph"]["path"] != "graph":
        for version in versions:
            journal.change(version)
        return run, False
    loaded = load_run(folder)
    if versions:
        on_graph(loaded, journal.graph(loaded.graph))
    return run, True


def _refuse_other_updates(journal: Journal) -> None:
    """Refuses a file of an update that the journal does not have, and one that it has and that was not given."""
    found = {path.name for path in journal.folder.glob("*") if path.name != JOURNAL}
    for name in sorted(found ^ set(journal.written()[1])):
        told = "the journal does not have this update" if name in found else "the file of this update is missing"
        raise DataError(f"{told}.", where=str(journal.folder / name), advice=AGAIN)
