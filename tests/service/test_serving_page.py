"""The page on serving: its curl and Python examples run against a service of `world`; its limits are the real ones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from urllib.parse import quote

import pytest

import hynt
from hynt.service import settings
from hynt.service.http.problems import SLUGS
from tests.conftest import ROOT, require
from tests.service.conftest import serving

PAGE = (ROOT / "docs" / "how-to" / "serving.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A service of `world` that has hardly learned anything: what is asked counts, not what it is worth."""
    import torch

    from hynt.training.run import start, train
    from tests.training.small_graph import tiny_settings

    torch.set_num_threads(1)
    place, cpu = tmp_path_factory.mktemp("page"), torch.device("cpu")
    chosen = tiny_settings(batch_size=512, schedule={"epochs": 1, "period": 1}, train_on="train+valid")
    train(start(hynt.load_graph("world"), chosen, place / "run", cpu), cpu)
    with serving(place / "run", place / "log") as service:
        yield service


def test_curl_examples(world):
    require("curl", shutil.which("curl") is not None, "apt install curl")
    commands = [
        command
        for block in re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
        for command in re.split(r"^(?=curl )", block, flags=re.MULTILINE)
        if command
    ]
    assert len(commands) == 11
    for command in commands:
        assert ADDRESS in command
        local = command.replace(ADDRESS, world.url).replace("curl ", "curl --fail-with-body --max-time 30 ", 1)
        done = subprocess.run(["bash", "-c", local], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout)
        assert not {"status", "errors"} & set(json.loads(done.stdout)), command


def test_examples_of_the_description(world):
    described = world.get("/openapi.json").json
    parts = described["components"]["schemas"]
    asked = 0
    for path, methods in described["paths"].items():
        for operation in methods.values():
            form = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            for name in re.findall(r"schemas/(\w+)", json.dumps(form)):
                for example in parts[name]["examples"]:
                    asked += 1
                    expected = 403 if path == "/v1/facts" else 200  # this service takes no updates
                    assert world.post(path, example).status == expected, (path, example)
            for one in operation.get("parameters", ()):
                for example in one["schema"].get("examples", ()):
                    asked += 1
                    filled = path.replace("{identity}", quote(example, safe=""))
                    query = "" if one["in"] == "path" else f"?{one['name']}={quote(example)}"
                    assert world.get(filled + query).status == 200, (filled, query)
    assert asked >= 10


def test_python_example(world):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example.replace(ADDRESS, world.url), "serving.md", "exec"), names)
    assert len(names["many"]) == 2
    assert len(names["answers"]) == 10


def test_every_endpoint_and_status_stands_on_the_page(world):
    for path in world.get("/openapi.json").json["paths"]:
        assert f"{path.replace('{identity}', '{id}')}`" in PAGE, path
    table = PAGE.split("| status | when |")[1].split("## ")[0]
    told = {
        int(status) for status in re.findall(r"\b([45]\d\d)\b", " ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.M)))
    }
    assert told == set(SLUGS) - {500}


def test_limits_on_the_page_are_the_real_ones():
    defaults = settings.ServiceSettings(ROOT)
    for words in (
        f"a body over {settings.BODY_BYTES // 1024} KiB",
        f"an address over {settings.TARGET_BYTES // 1024} KiB",
        f"headers over {settings.HEADER_BYTES // 1024} KiB",
        f"more than {settings.QUALIFIERS} qualifiers",
        f"`top` over {settings.TOP:,}",
        f"more than {settings.BATCH} questions",
        f"deeper than {settings.NESTING}",
        f"{defaults.queue:,} questions are waiting",
        f"within {defaults.answer_within:g} s (`--timeout`)",
        f"after `--grace` seconds ({defaults.grace:g})",
        f"waits for others ({1000 * defaults.window:g} ms)",
        f"longer than {defaults.head_within:g} s",
    ):
        assert words in PAGE, words
