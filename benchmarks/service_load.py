"""How a service bears load: latency and questions a second with 1, 16 and 128 clients, batching on and off.

    python -m benchmarks.service_load GRAPH [--seconds 5] [--clients 1,16,128] [--save FILE]

The run has the size of a real one (the model of `--preset`, on GRAPH) and the weights it would start training with:
what an answer is worth does not change how long it takes. It is measured twice: at the model queue, in this process
and without HTTP; and over HTTP, with `hynt serve` and the clients in processes of their own, on the same cores.
Every client asks its next question when it has its answer. Questions are facts of the test split with the tail hidden.
Processor time is that of this process: of the model at the queue, of the clients over HTTP. It hardly depends on what
else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.result_file import write_measured

if TYPE_CHECKING:
    from hynt.asking.predictor import Predictor
    from hynt.service.inference.answering import Reply

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the inference process has it

QUESTIONS = 2_000
Ask = Callable[[int], Awaitable[None]]


def make_run(graph_folder: Path, preset: str, out: Path) -> None:
    """A finished run with the weights of the very beginning. Trained on train+valid on paper, so that nothing is left
    to calibrate on, which would take longer than the measurement.
    """
    from hynt.graph.storage import load_graph
    from hynt.kernels.device import chosen_device
    from hynt.runs.checkpoint import save_tensors, weights_of
    from hynt.runs.opening import new_model
    from hynt.runs.training_data import training_data
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings
    from hynt.training.run import start

    device, graph = chosen_device("cpu"), load_graph(graph_folder)
    settings = resolve_settings(SettingsRequest("hynt", preset, train_on="train+valid"), graph, on_gpu=False)
    run = start(graph, settings, out, device, graph_folder)
    model = new_model(settings, training_data(graph, settings, run.scaling(graph), device), device)
    weights = out.with_name("weights.safetensors")
    save_tensors(weights_of(model), weights)
    run.finish(weights, {"weights_of_epoch": 0, "seconds": 0.0})


def questions_of(graph_folder: Path) -> list[dict[str, Any]]:
    """Facts of the test split as a client writes them, their tails hidden."""
    from hynt.graph.fact import Number
    from hynt.graph.storage import load_graph

    graph = load_graph(graph_folder)
    facts = list(graph.facts("test"))
    random.Random(1).shuffle(facts)
    return [
        {
            "head": fact.head,
            "relation": fact.relation,
            "tail": "?",
            "qualifiers": [
                {"relation": relation, "value": value.literal if isinstance(value, Number) else value}
                for relation, value in fact.qualifiers
            ],
        }
        for fact in facts
        if not isinstance(fact.tail, Number)
    ][:QUESTIONS]


def searched(graph_folder: Path) -> dict[str, Any]:
    """Searches for beginnings of names and for names with a wrong letter, in processor time."""
    from hynt.graph.storage import load_graph
    from hynt.graph.views import GraphViews

    graph, draw, took = load_graph(graph_folder), random.Random(1), []
    views = GraphViews(graph)
    for _ in range(250):
        name = draw.choice(graph.entity_labels)
        place = draw.randrange(len(name))
        for query in (name[: place + 1], name[:place] + "x" + name[place + 1 :]):
            began = time.process_time()
            views.entities(query, 10)
            took.append(time.process_time() - began)
    took.sort()
    return {"names": len(graph.entity_labels), "searches": len(took)} | _times(took)


def _times(took: list[float]) -> dict[str, float]:
    """Half are quicker than p50, all but one in a hundred quicker than p99; `took` ascends."""
    places = {"p50_ms": len(took) // 2, "p99_ms": int(0.99 * (len(took) - 1))}
    return {name: round(1000 * took[place], 1) for name, place in places.items()}


async def pressed(ask: Ask, clients: int, seconds: float) -> dict[str, Any]:
    """So many clients for so long, counted from when each has had its first answer; answers that come in time count."""
    took: list[float] = []
    served: set[int] = set()
    all_served = asyncio.Event()
    counting = False

    async def client(number: int) -> None:
        count = number
        while True:
            began = time.perf_counter()
            await ask(count)
            count += clients
            if counting:
                took.append(time.perf_counter() - began)
            served.add(number)
            if len(served) == clients:
                all_served.set()

    work = asyncio.gather(*(client(number) for number in range(clients)))
    waiting: list[asyncio.Future[Any]] = [work, asyncio.ensure_future(all_served.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    counting, begin, processor = True, time.perf_counter(), time.process_time()
    await asyncio.wait({work}, timeout=seconds)
    spent, processor = time.perf_counter() - begin, time.process_time() - processor
    if not work.done():
        work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    took.sort()
    return {
        "clients": clients,
        "questions": len(took),
        "questions_a_second": round(len(took) / spent, 1),
        **_times(took),
        "processor_ms_a_question": round(1000 * processor / max(1, len(took)), 2),
    }


class ThreadEngine:
    """A predictor in a thread of this process, to measure what the process costs."""

    def __init__(self, predictor: Predictor) -> None:
        from hynt.service.inference.answering import EngineState, FollowingJobs

        self.state = EngineState()
        self._answering = FollowingJobs(predictor)
        self._thread = ThreadPoolExecutor(1, "inference")

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._answering.now.warm_up)
        predictor = self._answering.now.predictor
        self.state.follows = predictor.loaded.observed is not None
        self.state.described = {**predictor.described(), **predictor.loaded.described()}
        self.state.examples = await loop.run_in_executor(self._thread, self._answering.now.examples)
        self.state.ready, self.state.reason = True, ""

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answering.replies, kind, jobs)

    async def follow(self) -> None:
        self._answering.follow()

    async def stop(self) -> None:
        self.state.ready, self.state.reason = False, "the service is stopping"
        self._thread.shutdown(wait=False, cancel_futures=True)


async def at_the_queue(run: Path, questions: list[dict[str, Any]], clients: int, batching: bool, seconds: float) -> Any:
    """The model queue in this process."""
    from hynt.front.run import load
    from hynt.service.inference.question_queue import QuestionQueue
    from hynt.service.settings import ServiceSettings

    defaults = ServiceSettings(run)
    engine = ThreadEngine(load(run, "cpu"))
    queue = QuestionQueue(
        engine, limit=defaults.queue, together=defaults.together if batching else 1, window=defaults.window
    )
    await engine.start()
    await queue.start()

    async def ask(number: int) -> None:
        (reply,) = await queue.ask("predict", [questions[number % len(questions)]], 600.0)
        assert reply.body, reply.faults

    try:
        return await pressed(ask, clients, seconds)
    finally:
        await queue.stop()
        await engine.stop()


async def over_http(port: int, questions: list[dict[str, Any]], clients: int, seconds: float) -> Any:
    """Clients that keep their connections, in this process; the service is in another."""
    bodies = [json.dumps(question).encode() for question in questions]
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(clients)]

    async def ask(number: int) -> None:
        head = await _asked(*connections[number % clients], bodies[number % len(bodies)])
        assert head.startswith(b"HTTP/1.1 200"), head[:200]

    health: list[float] = []
    watch = asyncio.create_task(_watch_health(port, health))
    try:
        found = await pressed(ask, clients, seconds)
    finally:
        watch.cancel()
        for _, writer in connections:
            writer.close()
    health.sort()
    return found | {f"health_{name}": value for name, value in _times(health).items()}


async def refused_over_http(
    port: int, questions: list[dict[str, Any]], clients: int, seconds: float, pause: float
) -> Any:
    """How long a client waits to hear that the queue is full. It comes back after a pause; 0: when it was told to."""
    bodies = [json.dumps(question).encode() for question in questions]
    until, took, answered = time.perf_counter() + seconds, list[float](), 0

    async def client(number: int) -> None:
        nonlocal answered
        connection = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(random.random())
        while time.perf_counter() < until:
            began = time.perf_counter()
            head = await _asked(*connection, bodies[number % len(bodies)])
            number += clients
            if head.startswith(b"HTTP/1.1 200"):
                answered += 1
                continue
            assert head.startswith(b"HTTP/1.1 429"), head[:200]
            took.append(time.perf_counter() - began)
            told = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"retry-after:"))
            await asyncio.sleep((pause or float(told.split(b":")[1])) * random.uniform(0.5, 1.5))
        connection[1].close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    took.sort()
    return {"clients": clients, "answered": answered, "refused": len(took), **_times(took)}


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> bytes:
    """Posts a question and takes the whole answer; its head."""
    head = (
        "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
    return answer


async def _watch_health(port: int, took: list[float]) -> None:
    """How long /health takes meanwhile, a hundred times a second at most."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            began = time.perf_counter()
            writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b'{"alive": true}')
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)
    finally:
        writer.close()


def served(
    run: Path, questions: Path, clients: list[int], batching: bool, seconds: float, pause: float | None = None
) -> list[Any]:
    """`hynt serve`, and for each number of clients a process that presses it. With a pause after each refusal the queue
    is small, so that there are refusals.
    """
    command = [sys.executable, "-m", "hynt", "serve", str(run), "--port", "0", "--json", "--quiet", "--timeout", "600"]
    command += ["--batching" if batching else "--no-batching", *([] if pause is None else ["--queue", "16"])]
    refused = [] if pause is None else ["--refused", str(pause)]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        port = int(json.loads(service.stdout.readline())["url"].rpartition(":")[2])
        found = []
        for count in clients:
            pressing = [
                sys.executable,
                "-m",
                "benchmarks.service_load",
                str(questions),
                "--press",
                str(port),
                "--clients",
                str(count),
                "--seconds",
                str(seconds),
                *refused,
            ]
            found.append(json.loads(subprocess.run(pressing, stdout=subprocess.PIPE, check=True).stdout))
        return found
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


def wait_until_ready(port: int) -> None:
    from hynt import Client

    client, until = Client(f"http://127.0.0.1:{port}"), time.monotonic() + 300
    while not client.is_ready():
        assert time.monotonic() < until, "the service did not get ready"
        time.sleep(0.2)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("graph", type=Path, help="a saved graph; with --press, a file of questions")
    reader.add_argument("--preset", default="wd50k-link")
    reader.add_argument("--clients", default="1,16,128")
    reader.add_argument("--seconds", type=float, default=5.0)
    reader.add_argument("--save", type=Path)
    reader.add_argument("--press", type=int, metavar="PORT", help=argparse.SUPPRESS)
    reader.add_argument("--refused", type=float, metavar="PAUSE", help=argparse.SUPPRESS)
    given = reader.parse_args()
    clients = [int(count) for count in given.clients.split(",")]
    if given.press is not None:
        wait_until_ready(given.press)
        questions = json.loads(given.graph.read_bytes())
        asked_by = given.press, questions, clients[0], given.seconds
        press = over_http(*asked_by) if given.refused is None else refused_over_http(*asked_by, given.refused)
        print(json.dumps(asyncio.run(press)))
        return
    result: dict[str, Any] = {
        "graph": given.graph.name,
        "preset": given.preset,
        "seconds": given.seconds,
        "cores": os.cpu_count(),
        "load_before": os.getloadavg(),
        "search": searched(given.graph),
        "queue": {},
        "http": {},
        "refused": {},
    }
    with tempfile.TemporaryDirectory(prefix="hynt-load-") as folder:
        run, asked = Path(folder) / "run", Path(folder) / "questions.json"
        make_run(given.graph, given.preset, run)
        questions = questions_of(given.graph)
        asked.write_text(json.dumps(questions), encoding="utf-8")
        for batching in (True, False):
            name = "batching" if batching else "alone"
            result["queue"][name] = [
                asyncio.run(at_the_queue(run, questions, count, batching, given.seconds)) for count in clients
            ]
            result["http"][name] = served(run, asked, clients, batching, given.seconds)
            print(json.dumps({place: result[place][name] for place in ("queue", "http")}), file=sys.stderr, flush=True)
        for name, pause in (("as_told", 0.0), ("at_once", 0.05)):
            result["refused"][name] = served(run, asked, clients[-1:], True, given.seconds, pause)
    result["load_after"] = os.getloadavg()
    print(json.dumps(result, indent=2))
    if given.save is not None:
        write_measured(given.save, result, str(__doc__))


if __name__ == "__main__":
    main()
