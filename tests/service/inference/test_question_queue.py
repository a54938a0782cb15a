"""The model queue: what goes together, what is refused, and that nobody waits for nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from hynt.service.http.problems import HttpProblem
from hynt.service.inference.question_queue import QuestionQueue, cost
from tests.service.inference.fake_engine import FakeEngine
from tests.service.loop_apart import run_apart


def with_queue(work, engine, **changes):
    """Runs a coroutine function with a queue that is started and stopped around it."""

    async def main():
        queue = QuestionQueue(engine, **{"limit": 100, "together": 8, "window": 0.01, **changes})
        await queue.start()
        try:
            return await work(queue)
        finally:
            await queue.stop()

    return run_apart(main())


def jobs(*numbers):
    return [{"number": number} for number in numbers]


async def asked(queue, *numbers, kind="predict", within=5.0):
    replies = await queue.ask(kind, jobs(*numbers), within)
    return [json.loads(reply.body)["asked"]["number"] for reply in replies]


def test_questions_that_come_together_are_answered_together_and_in_order():
    engine = FakeEngine()

    async def work(queue):
        return await asyncio.gather(*(asked(queue, number) for number in range(20)))

    assert with_queue(work, engine) == [[number] for number in range(20)]
    assert [len(batch) for batch in engine.batches] == [8, 8, 4]


def test_what_arrives_while_the_model_is_busy_goes_with_the_next_batch():
    engine = FakeEngine(seconds=0.3)

    async def work(queue):
        first = asyncio.create_task(asked(queue, 0))
        await asyncio.sleep(0.05)
        rest = [asyncio.create_task(asked(queue, number)) for number in range(1, 6)]
        return await asyncio.gather(first, *rest)

    with_queue(work, engine, window=0.0)
    assert [len(batch) for batch in engine.batches] == [1, 5]


def test_clients_that_ask_again_at_once_end_up_in_one_batch():
    engine = FakeEngine(seconds=0.2)

    async def client(queue, number):
        await asyncio.sleep(0.05 * number)  # so that the first batch holds one of them alone
        for _ in range(4):
            assert await asked(queue, number) == [number]

    async def work(queue):
        await asyncio.gather(*(client(queue, number) for number in range(3)))

    with_queue(work, engine)
    sizes = [len(batch) for batch in engine.batches]
    assert sizes[0] == 1
    assert sizes[2] == 3
    assert sum(sizes) == 12


def test_without_batching_every_question_goes_alone():
    engine = FakeEngine()

    async def work(queue):
        await asyncio.gather(*(asked(queue, number) for number in range(5)))

    with_queue(work, engine, together=1)
    assert [len(batch) for batch in engine.batches] == [1] * 5


def test_long_questions_take_more_room():
    pair = {"relation": "date", "value": 1990}
    assert cost({"head": "a", "relation": "b", "tail": "?", "qualifiers": [pair] * 7}) == 1
    assert cost({"head": "a", "relation": "b", "tail": "?", "qualifiers": [pair] * 64}) == 64
    assert cost({"head": "a", "relation": "?", "tail": "Tokyo"}) == 1
    assert (
        cost({"head": "a", "relation": "?", "tail": "80 kg"}) == cost({"head": "a", "relation": "?", "tail": 80}) == 8
    )
    assert cost({"head": "a", "relation": "b", "tail": "c", "qualifiers": [{"relation": "?", "value": 3}] * 16}) == 32
    engine = FakeEngine()
    questions = [{"relation": "?", "tail": 80}] * 3 + [{"relation": "b", "tail": "?"}] * 3

    async def work(queue):
        await queue.ask("predict", questions, 5.0)

    with_queue(work, engine, together=16)
    assert [len(batch) for batch in engine.batches] == [2, 4]


def test_other_kinds_go_alone_and_keep_their_turn():
    engine = FakeEngine()

    async def work(queue):
        await asyncio.gather(
            asked(queue, 0),
            asked(queue, 1),
            asked(queue, 2, kind="trends"),
            asked(queue, 3, kind="trends"),
            asked(queue, 4),
        )

    with_queue(work, engine)
    assert [[job["number"] for job in batch] for batch in engine.batches] == [[0, 1], [2], [3], [4]]


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back():
    engine = FakeEngine(seconds=0.2)

    async def work(queue):
        waiting = [asyncio.create_task(asked(queue, number)) for number in range(10)]
        await asyncio.sleep(0.05)
        began = asyncio.get_running_loop().time()
        with pytest.raises(HttpProblem) as refused:
            await asked(queue, 10)
        assert asyncio.get_running_loop().time() - began < 0.1
        await asyncio.gather(*waiting)
        return refused.value

    problem = with_queue(work, engine, limit=10)
    assert problem.status == 429
    assert problem.detail == "10 questions are waiting, and 1 more would pass the limit of 10."
    assert int(problem.headers["Retry-After"]) >= 1


def test_those_who_leave_are_not_asked_for():
    engine = FakeEngine(seconds=0.3)

    async def work(queue):
        first = asyncio.create_task(asked(queue, 0))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(asked(queue, 1))
        stays = asyncio.create_task(asked(queue, 2))
        await asyncio.sleep(0)
        gone.cancel()
        assert await first == [0]
        assert await stays == [2]
        assert len(queue) == 0

    with_queue(work, engine, window=0.0)
    assert [[job["number"] for job in batch] for batch in engine.batches] == [[0], [2]]


def test_time_runs_out():
    async def work(queue):
        with pytest.raises(HttpProblem) as refused:
            await asked(queue, 0, within=0.05)
        return refused.value

    problem = with_queue(work, FakeEngine(seconds=0.3))
    assert (problem.status, problem.detail) == (503, "there was no answer within 0.05 s.")


def test_a_dead_engine_refuses_what_is_under_way_and_what_waits():
    engine = FakeEngine(seconds=0.05)
    engine.dead = True

    async def work(queue):
        found = await asyncio.gather(*(asked(queue, number) for number in range(12)), return_exceptions=True)
        assert {(problem.status, problem.detail) for problem in found} == {(503, "the inference process ended.")}
        engine.dead = False
        assert await asked(queue, 99) == [99]

    with_queue(work, engine, together=4)


def test_a_model_that_is_not_there_is_told_at_once():
    engine = FakeEngine()
    engine.state.ready, engine.state.reason = False, "the model is being loaded"

    async def work(queue):
        with pytest.raises(HttpProblem) as refused:
            await asked(queue, 0)
        return refused.value

    problem = with_queue(work, engine)
    assert (problem.status, problem.detail) == (503, "the model is not there: the model is being loaded.")
    assert problem.headers == {"Retry-After": "2"}
