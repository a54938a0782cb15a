"""A bar on a terminal, a line that rewrites itself in a notebook, seldom lines elsewhere: the same words in all."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from hynt.progress import Progress, ShownProgress, duration
from hynt.runs.checkpoint import EpochRecord, TrainingProgress, ValidationRecord
from hynt.sweeping.trial import SweepProgress, TrialNews, Waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ZMQInteractiveShell:
    """What IPython calls the shell of a notebook's kernel."""


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def lines(clock):
    """Plain lines, as they come in a file or a pipe."""
    stream = io.StringIO()
    with ShownProgress(stream, lambda: clock.now) as progress:
        yield progress, lambda: stream.getvalue().splitlines()


def test_plain_lines_come_every_few_seconds(lines, clock):
    progress, said = lines
    for number, clock.now in enumerate((1.0, 4.9, 5.5, 6.0, 11.0), 1):
        progress.update("reading", 1_000 * number, unit="facts", share=number / 10, note=f"{number}.0 of 10.0 MB")
    assert said() == [
        "reading: 3,000 facts (30%), 444 facts/s, 3.0 of 10.0 MB, about 16 s left",
        "reading: 5,000 facts (50%), 400 facts/s, 5.0 of 10.0 MB, about 12 s left",
    ]


def test_one_is_told_of_as_one(lines, clock):
    progress, said = lines
    progress.update("trying", 1, unit="epochs", always=True)
    progress.update("trying", 1, 2, "epochs", always=True)
    progress.update("trying", 0, 1, "epochs", always=True)
    assert said() == ["trying: 1 epoch", "trying: 1 of 2 epochs (50%)", "trying: 0 of 1 epoch (0%)"]


def test_speed_and_time_left_are_of_the_stage_at_hand(lines, clock):
    progress, said = lines
    progress.update("checking", 1000, unit="questions", share=0.5)
    clock.now = 10.0
    progress.update("answering", 2000, 10_000, "questions")  # resumed: these were done before
    clock.now = 20.0
    progress.update("answering", 6000, 10_000, "questions")
    assert said() == [
        "answering: 2,000 of 10,000 questions (20%)",
        "answering: 6,000 of 10,000 questions (60%), 400 questions/s, about 10 s left",
    ]


def test_a_stage_that_begins_anew_is_timed_anew(lines, clock):
    progress, said = lines
    for clock.now, done in ((0.0, 10), (90.0, 1000), (100.0, 10), (110.0, 110)):  # one fold of an audit, then the next
        progress.update("judging", done, 1010, "questions")
    assert said()[-1] == "judging: 110 of 1,010 questions (11%), 10 questions/s, about 90 s left"


def test_work_that_only_counts(lines, clock):
    progress, said = lines
    asked = progress.counting("evaluating")
    asked(0, 200)
    clock.now = 6.0
    asked(60, 200)
    assert said() == ["evaluating: 60 of 200 questions (30%), 10 questions/s, about 14 s left"]


def test_a_size_that_nobody_knows(lines):
    progress, said = lines
    progress.update("splitting", 12_345, unit="facts", always=True)
    assert said() == ["splitting: 12,345 facts"]


def test_what_comes_from_data_cannot_steer_the_terminal(lines):
    progress, said = lines
    progress.note("\x1b[2Jgone")
    progress.update("reading", 1, unit="\x07facts", always=True)
    assert said() == ["note: \\x1b[2Jgone", "reading: 1 \\x07fact"]


def test_a_terminal_gets_a_bar():
    stream = Terminal()
    with ShownProgress(stream) as progress:
        progress.update("reading", 2_468, unit="facts", share=1.0, note="10.0 of 10.0 MB")
        progress.note("compiled [bold]")
    assert "reading: 2,468 facts (100%), 10.0 of 10.0 MB" in stream.getvalue()
    assert "note: compiled [bold]" in stream.getvalue()


def test_a_notebook_rewrites_its_line(monkeypatch, capsys, clock):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    with ShownProgress(clock=lambda: clock.now) as progress:
        for clock.now in (1.0, 1.01, 2.0):
            progress.update("answering", int(clock.now * 100), 200)
        progress.say("half")
        clock.now = 3.0
        progress.update("answering", 200, 200)
    shown = capsys.readouterr()
    first, second = "answering 100 of 200", "answering 200 of 200"
    assert shown.out == f"\r{first}\r{second}\r{' ' * len(second)}\rhalf\n\r{second}\r{' ' * len(second)}\r"
    assert shown.err == ""


def test_nobody_need_listen(capsys):
    progress = Progress()
    progress.update("reading", 1)
    progress.note("unheard")
    progress.counting("asking")(1, 2)
    assert capsys.readouterr() == ("", "")


def test_durations_read_well():
    assert [duration(seconds) for seconds in (3, 89, 600, 9000)] == ["3 s", "89 s", "10 min", "2.5 h"]


class TestTraining:
    def test_where_the_clock_ends_training_the_time_left_is_the_clocks_and_the_last_epoch_is_told(self, lines):
        progress, said = lines
        training = TrainingProgress(progress)
        for epoch, (items, seconds, left) in enumerate([(1000, 2.0, 3.0), (1000, 2.0, 1.0), (500, 1.0, -0.01)], 1):
            training.epoch_done(EpochRecord("masked facts", epoch, 900, 1e-3, {"link": 5.0}, {}, items, seconds, left))
        assert said() == ["epoch 1: loss link 5, 500 facts/s, about 3 s left", "epoch 3: loss link 5, 500 facts/s"]

    def test_where_validation_may_end_training_nobody_knows_what_is_left(self, lines):
        """It said "about 0 s left" at the end of each fall of the rate, and went on twice as long."""
        progress, said = lines
        training = TrainingProgress(progress)
        for epoch, until in ((1, 3), (3, 3), (8, 9), (9, 9)):
            record = EpochRecord("masked facts", epoch, 9, 1e-3, {"link": 5.0}, {}, 1000, 2.0, None, until)
            training.epoch_done(record)
        assert said() == [
            "epoch 1 of 3: loss link 5, 500 facts/s; on while validation improves, about 4 s left",
            "epoch 3 of 3: loss link 5, 500 facts/s; validation says whether it goes on",
            "epoch 9 of 9: loss link 5, 500 facts/s",
        ]

    def test_validations_and_notes_stay(self, lines):
        progress, said = lines
        training = TrainingProgress(progress)
        training.note("slow")
        training.validated(ValidationRecord("masked facts", 2, "link.all.mrr", 0.25, True, 0.5, 1.0))
        assert said() == ["note: slow", "epoch 2: validation link.all.mrr 0.2500 (best so far), 0.5 s"]


class TestSweep:
    def test_a_long_trial_says_where_it_is(self, lines, clock):
        progress, said = lines
        plan = SimpleNamespace(metric="link.all.mrr", trials=4, lower_is_better=False)
        hear = SweepProgress(plan, progress)
        hear(TrialNews(0, "begun"))
        hear(TrialNews(0, "trained", epoch=1, epochs=40))
        hear(TrialNews(0, "validated", epoch=1, value=0.125))
        clock.now = 12.0
        hear(TrialNews(0, "trained", epoch=4, epochs=40))
        hear(TrialNews(1, "begun"))
        hear(TrialNews(1, "trained", epoch=1, epochs=40))
        clock.now = 24.0
        hear(TrialNews(1, "trained", epoch=3, epochs=40))
        hear(TrialNews(0, "ended", value=0.125, outcome="pruned"))
        assert said() == [
            "sweeping: 0 of 4 trials (2%), trial 0 at epoch 4 of 40 with link.all.mrr 0.1250, about 10 min left",
            "sweeping: 0 of 4 trials (4%), trial 0 at epoch 4 of 40 with link.all.mrr 0.1250, "
            "trial 1 at epoch 3 of 40, about 10 min left",
            "trial 0 pruned: link.all.mrr 0.1250",
        ]

    def test_progress_knows_what_is_better(self, lines):
        progress, said = lines
        plan = SimpleNamespace(metric="number.all.rmse", trials=2, lower_is_better=True)
        hear = SweepProgress(plan, progress)
        for number, value in enumerate((0.5, 0.7, 0.25)):
            hear(TrialNews(number, "begun", {"model.dropout": 0.1}))
            hear(TrialNews(number, "ended", value=value))
        hear(TrialNews(3, "ended", value=0.1, outcome="pruned"))
        hear(Waiting(1, 60))
        assert ["best so far" in line for line in said()] == [True, False, True, False, False]
        assert said()[4] == "note: waiting for a trial of other workers; one that is silent for 60 s is tried again."
        assert said()[0] == "trial 0 complete: number.all.rmse 0.5000 (best so far); model.dropout=0.1"


def test_a_narrow_terminal_keeps_bar_and_time_left():
    stream = Terminal()
    note = "loss link 6.69, relation 3.423, number 0.1594, 7,224 facts/s"
    with ShownProgress(stream) as progress:
        progress._bar.console.width = 80
        progress.update("epoch", 12, 400, note=note, seconds_left=2400.0, always=True)
        line = progress._bar.tasks[0].description
    assert line == "epoch 12 of 400: loss link 6.69, about 40 min left"
    assert "━" in stream.getvalue()
