"""Two workers that know nothing of each other but a PostgreSQL server, which the test starts for itself on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hynt.errors import DataError
from hynt.sweeping.study import StudyStorage, counting, opened
from tests.conftest import ROOT, require
from tests.sweeping.conftest import make_plan

PASSWORD = "s3cr%et-of-the-sweep"
IN_URL = "s3cr%25et-of-the-sweep"
SPACE = """
[settings]
batch_size = 16
model.dimension = 16
model.context_feedforward = 32
model.prediction_feedforward = 32
schedule.epochs = 3
schedule.period = 3
validation.every = 1

[space]
optimiser.learning_rate = { log_range = [1e-4, 1e-1] }
model.context_heads = { choices = [1, 2, 4], also = ["model.prediction_heads"] }
"""


def programs() -> Path | None:
    """Where Debian, or the path, has PostgreSQL's own programs."""
    found = shutil.which("initdb")
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *([Path(found).resolve().parent] if found else [])]
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server with an empty database. It refuses to run as root, so root starts it as somebody else."""
    where = programs()
    require("PostgreSQL", where is not None, "apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="hynt-postgresql-"))
    runs_as: dict[str, int] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        runs_as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)

    def call(program: str, *arguments: str) -> None:
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        with (folder / "log").open("a") as log:
            done = subprocess.run(
                [str(where / program), *arguments],
                cwd=folder,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **runs_as,
            )
        assert done.returncode == 0, (folder / "log").read_text()

    data, port = str(folder / "data"), free_port()
    call("initdb", "-D", data, "-U", "sweeper", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    call("pg_ctl", "-D", data, "-w", "-o", options, "start")
    try:
        yield f"postgresql://sweeper:{IN_URL}@127.0.0.1:{port}/postgres"
    finally:
        with contextlib.suppress(AssertionError):
            call("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_two_workers_share_a_sweep_through_a_server(server, people, tmp_path):
    (tmp_path / "space.toml").write_text(SPACE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HYNT_SWEEP_STORAGE": server}

    def worker(name: str) -> subprocess.Popen[str]:
        call = [
            sys.executable,
            "-m",
            "hynt",
            "sweep",
            str(people),
            "--space",
            str(tmp_path / "space.toml"),
            "--trials",
            "8",
            "--out",
            str(tmp_path / name),
            "--name",
            "shared",
            "--pruner",
            "none",
            "--device",
            "cpu",
            "--resume",
            "--json",
        ]
        return subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    workers = {name: worker(name) for name in ("first", "second")}
    told = {name: process.communicate(timeout=240) for name, process in workers.items()}
    assert [process.returncode for process in workers.values()] == [0, 0], told
    results = {name: json.loads(out) for name, (out, _) in told.items()}
    for result in results.values():
        assert result["trials"] == {"complete": 8, "pruned": 0, "failed": 0, "unfinished": 0}
    assert results["first"]["best"] == results["second"]["best"]
    ran = {name: {path.stem for path in (tmp_path / name / "trials").glob("*.jsonl")} for name in workers}
    assert ran["first"]
    assert ran["second"]
    assert not ran["first"] & ran["second"], "no trial was run twice"
    assert len(ran["first"] | ran["second"]) == 8
    shown = "".join(out + err for out, err in told.values())
    assert PASSWORD not in shown
    assert IN_URL not in shown
    assert f"127.0.0.1:{server.rpartition(':')[2].partition('/')[0]}" in results["first"]["storage"]
    written = everything_written(tmp_path)
    assert PASSWORD.encode() not in written
    assert IN_URL.encode() not in written


@pytest.mark.slow
def test_a_lost_worker_on_a_server_is_replaced(server, people, tmp_path):
    from hynt.interruption import Stopper
    from hynt.sweeping.sweep import sweep
    from tests.sweeping.conftest import Heard

    plan = make_plan(people, tmp_path / "out", server, trials=2, pruning="none", name="lost")
    with opened(plan) as study:
        plan.space.suggest(study.ask())  # a worker that asked for a trial and was never heard of again
        study._storage.record_heartbeat(study.get_trials()[0]._trial_id)
    result = sweep(plan, Heard(), Stopper(), resume=True)
    assert result["trials"] == {"complete": 2, "pruned": 0, "failed": 0, "unfinished": 0}
    with opened(plan) as study:
        first, *others = study.get_trials()
        assert first.state.name == "FAIL"
        assert first.params in [trial.params for trial in others]
        assert len(counting(study.get_trials())) == 2


def test_a_refused_password_is_not_repeated(server, people, tmp_path):
    wrong = server.replace(IN_URL, "wr0ng-password")
    with pytest.raises(DataError) as problem, opened(make_plan(people, tmp_path / "out", wrong)):
        pass
    assert "password authentication failed" in str(problem.value)
    assert "wr0ng-password" not in str(problem.value)
    assert problem.value.where.startswith("postgresql://sweeper@127.0.0.1:")


def test_what_is_shown_of_an_address_has_no_secret():
    place = StudyStorage.of("postgresql://ann:p%40ss@db.example:5433/x?sslpassword=hidden", Path("unused"))
    assert str(place) == "postgresql://ann@db.example:5433/x"
    assert "p%40ss" not in repr(place)
    for given, shown in ((None, "out/sweep.db"), ("mine.db", "mine.db"), ("sqlite:////tmp/x.db", "/tmp/x.db")):
        assert str(StudyStorage.of(given, Path("out/sweep.db"))) == shown
    assert place.without_secrets("p@ss p%40ss sslpassword=hidden") == "*** *** ***"
