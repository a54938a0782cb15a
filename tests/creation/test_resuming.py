"""A build that was stopped goes on where it was, and nobody can tell from the graph."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hynt.creation.building import create_graph
from hynt.creation.options import CreationOptions, EngineOptions
from hynt.errors import DataError, UsageError
from hynt.formats import lines as blocks
from hynt.progress import SILENT
from tests.creation.sources.wikidata_lines import dump, entity, item_value, quantity_value, snak, statement, time_value
from tests.heard_progress import HeardProgress

PART_BYTES = 20_000


def many_entities(count=400):
    return dump(
        [
            entity(
                f"Q{n}",
                [
                    statement("P31", item_value(f"Q{n % 50 + 1}")),
                    statement(
                        "P2048",
                        quantity_value(f"+{n}", "Q174728"),
                        qualifiers=[snak("P585", time_value("+2020-01-01T00:00:00Z"))],
                    ),
                ],
            )
            for n in range(1, count + 1)
        ]
    )


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8000)  # parts are cut between blocks
    path = tmp_path / "dump.json"
    path.write_bytes(many_entities())
    return path


def build(path, out, progress=SILENT, **options):
    settings = {
        "everything": True,
        "part_bytes": PART_BYTES,
        "name": "graph",
        "engine": EngineOptions(workers=1),
        **options,
    }
    return create_graph("wikidata", path, out, CreationOptions(**settings), progress=progress)


def contents(folder):
    return {found.name: found.read_bytes() for found in folder.iterdir()}


def parts_of(work):
    return {found.name: found.stat().st_mtime_ns for found in work.joinpath("parts").glob("part-*.json")}


class Stopped(Exception):
    pass


def stop_after(parts, work):
    def stop(update):
        if len(parts_of(work)) >= parts:
            raise Stopped

    return HeardProgress(stop)


def test_a_stopped_build_goes_on(path, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "graph"
    build(path, whole)
    with pytest.raises(Stopped):
        build(path, out, stop_after(5, tmp_path / "graph.work"))
    assert not out.exists()
    before = parts_of(tmp_path / "graph.work")
    assert 5 <= len(before) < 20
    build(path, out, keep_work=True)
    after = parts_of(tmp_path / "graph.work")
    assert {name: after[name] for name in before} == before  # not made again
    assert len(after) > len(before)
    assert contents(out) == contents(whole)


def test_a_damaged_part_is_made_again(path, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "graph"
    build(path, whole)
    with pytest.raises(Stopped):
        build(path, out, stop_after(5, tmp_path / "graph.work"))
    victims = sorted(tmp_path.joinpath("graph.work", "parts").glob("part-*.parsed.parquet"))
    victims[0].write_bytes(victims[0].read_bytes()[:-10])
    victims[1].unlink()
    tmp_path.joinpath("graph.work", "parts", "part-000000000002.json").write_text("{", encoding="utf-8")
    tmp_path.joinpath("graph.work", "parts", ".partial-part-000000000009.json-1").write_text("{", encoding="utf-8")
    build(path, out)
    assert contents(out) == contents(whole)


def test_a_finished_build_leaves_no_work_behind(path, tmp_path):
    build(path, tmp_path / "graph")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["dump.json", "graph"]


@pytest.mark.parametrize(
    "change", [{"text": "keep"}, {"language": "de"}, {"units": "keep"}, {"everything": False, "types": ("Q5",)}]
)
def test_a_work_folder_serves_one_build(change, path, tmp_path):
    with pytest.raises(Stopped):
        build(path, tmp_path / "graph", stop_after(1, tmp_path / "graph.work"))
    with pytest.raises(UsageError) as caught:
        build(path, tmp_path / "graph", **change)
    assert "the work begun here is that of another job" in str(caught.value)


def test_another_dump_is_not_mixed_in(path, tmp_path):
    with pytest.raises(Stopped):
        build(path, tmp_path / "graph", stop_after(1, tmp_path / "graph.work"))
    path.write_bytes(many_entities(401))
    with pytest.raises(UsageError, match="another job: files changed"):
        build(path, tmp_path / "graph")


def test_a_folder_with_other_things_is_not_used(path, tmp_path):
    work = tmp_path / "mine"
    work.mkdir()
    (work / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="holds something other than the work of a job"):
        build(path, tmp_path / "graph", work=work)
    assert [found.name for found in work.iterdir()] == ["letter.txt"]


def command(path, out, *more):
    options = ["--all", "--out", str(out), "--name", "graph", "--workers", "2", *more]
    return [sys.executable, "-m", "hynt", "create", "wikidata", str(path), *options]


def test_processes_make_the_same_graph_as_one(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(many_entities(4000))
    build(path, tmp_path / "one", part_bytes=0)
    build(path, tmp_path / "two", part_bytes=0, engine=EngineOptions(workers=2))
    assert path.stat().st_size > 4 << 20
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def children_of(process):
    return [int(text) for path in Path(f"/proc/{process}/task").glob("*/children") for text in path.read_text().split()]


def test_a_killed_build_goes_on(tmp_path):
    path, out = tmp_path / "dump.json", tmp_path / "graph"
    path.write_bytes(many_entities(12_000))
    build(path, tmp_path / "whole", part_bytes=0)
    process = subprocess.Popen(command(path, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(parts_of(out.with_name("graph.work"))) < 1 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]  # none is left behind
    before = parts_of(out.with_name("graph.work"))
    assert before
    done = subprocess.run(command(path, out, "--keep-work"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = parts_of(out.with_name("graph.work"))
    assert {name: after[name] for name in before} == before
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_build_that_is_killed_again_and_again_ends_the_same(seed, tmp_path):
    path, out, moments = tmp_path / "dump.json", tmp_path / "graph", random.Random(seed)
    path.write_bytes(many_entities(30_000))
    build(path, tmp_path / "whole", part_bytes=0)
    for _ in range(8):
        process = subprocess.Popen(command(path, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 5.0))
        process.send_signal(moments.choice([signal.SIGKILL, signal.SIGTERM]))
        process.wait()
    if not out.exists():
        subprocess.run(command(path, out), check=True, capture_output=True)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_worker_that_dies_is_told(path, tmp_path, monkeypatch):
    from hynt.creation import parts

    monkeypatch.setattr(parts, "SMALL_BYTES", 0)
    monkeypatch.setattr(parts, "_build", _die)
    with pytest.raises(DataError, match="a process that parses was ended from outside") as caught:
        build(path, tmp_path / "graph", engine=EngineOptions(workers=2))
    assert "Run the command again" in caught.value.advice


def _die(part):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_place_that_cannot_be_written_is_told(path, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="the work folder cannot be written"):
        build(path, Path(blocked / "graph"))
