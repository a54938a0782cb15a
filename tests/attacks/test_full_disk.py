"""A disk that is full: whoever writes says so, keeps what was there, and leaves nothing half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.attacks.writers import WRITERS, command

PAGE = 4096
"""Bytes that a file takes at least on a disk in memory."""
QUICK_LANE = {
    ("train", 40_000),
    ("complete", 1_000),
    ("report", 20_000),
    ("import", 500),
    ("ensemble", 5_000),
    ("export", 5_000),
}


@pytest.mark.parametrize(
    ("verb", "size"),
    [
        pytest.param(verb, size, marks=() if (verb, size) in QUICK_LANE else pytest.mark.slow)
        for verb in WRITERS
        for size in (100, 500, 1_000, 5_000, 20_000, 40_000)
    ],
)
def test_whoever_writes_says_what_is_full(hynt, place, tmp_path, verb, size):
    outcome = hynt.fair(*command(verb, place, tmp_path), largest_file=size)
    left = [path for path in tmp_path.rglob("*") if path.name.startswith((".partial-", ".old-"))]
    assert not left
    if outcome.code:
        assert outcome.code == 1
        assert (
            "File too large" in outcome.said or "disk I/O error" in outcome.said or "No space left" in outcome.said
        )  # SQLite's words
        assert "what to do:" in outcome.said
        assert ".partial-" not in outcome.said
        assert hynt.fair(*command_again(verb, place, tmp_path)).code == 0


def test_an_update_that_finds_no_room_changes_nothing(hynt, inductive_run, tmp_path):
    run = shutil.copytree(inductive_run, tmp_path / "run")
    (tmp_path / "more.jsonl").write_text('{"head": "Zoe", "relation": "knows", "tail": "person 1"}\n')
    refused = hynt.fair("update", run, tmp_path / "more.jsonl", largest_file=50)
    assert refused.code == 1
    assert "File too large" in refused.said
    assert "what to do:" in refused.said
    assert hynt.fair("update", run, tmp_path / "more.jsonl").code == 0


def command_again(verb: str, place: Path, out: Path) -> list[str]:
    """The same once there is room; what was begun goes on."""
    shutil.rmtree(out / "asked")
    words = command(verb, place, out)
    begun = [out / "run", out / "sweep", *out.glob("*.parquet.partial")]
    return [*words, "--resume"] if any(path.exists() for path in begun) else words


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS)
@pytest.mark.parametrize("size", [8_192, 40_960, 204_800])
def test_a_disk_that_is_really_full(place, tmp_path, verb, size):
    """A mounted one, where the system lets us mount; results go there, and all else stays where it is."""
    code, said = on_disk(verb, place, tmp_path, size)
    assert code in (0, 1, 2), said
    assert code == 0 or "No space left on device" in said or "the storage of the sweep" in said


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS)
def test_a_disk_that_can_only_be_read(place, tmp_path, verb):
    code, said = on_disk(verb, place, tmp_path, None)
    assert code in (1, 2) or verb == "calibrate", said  # which writes into the run, not here
    assert code == 0 or "Read-only file system" in said


def on_disk(verb: str, place: Path, out: Path, room: int | None) -> tuple[int, str]:
    """How a command ends on a mounted disk with so many bytes left, or on one that can only be read."""
    import subprocess
    import sys

    from tests.conftest import require

    able = ["unshare", "-rm", "true"]
    can = shutil.which("unshare") is not None and subprocess.run(able, check=False, capture_output=True).returncode == 0
    require("a mount of one's own", can, "allow user namespaces")
    (out / "disk").mkdir()
    shutil.copytree(place / "run", out / "asked")
    words = [word.replace(f"{out}/", f"{out}/disk/") for word in command(verb, place, out / "elsewhere")]
    words = [word.replace(f"{out}/disk/elsewhere", f"{out}/disk") for word in words]
    words = [word.replace(f"{out}/disk/asked", f"{out}/asked") for word in words]
    there = list((out / "elsewhere" / "followed").rglob("*"))  # what the command changes in its place
    pages = sum(-(-path.stat().st_size // PAGE) for path in there if path.is_file()) + len(there) + 1
    options = "ro" if room is None else f"size={room + (pages * PAGE if there else 0)}"
    copied = 'cp -r "$0"/../elsewhere/followed "$0" && ' if there else ""
    shell = f'mount -t tmpfs tmpfs "$0" && {copied}mount -o remount,{options} "$0" && exec "$@"'
    argv = ["unshare", "-rm", "sh", "-c", shell, str(out / "disk"), sys.executable, "-m", "hynt", *words]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr
