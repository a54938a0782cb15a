"""How an audit goes, on standard error: which fold, how its training goes, and how many questions are answered."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from hynt.cli.progress import QuestionProgress
from hynt.cli.training_progress import TrainingProgress

if TYPE_CHECKING:
    from hynt.runs.progress import EpochRecord, ValidationRecord


class AuditProgress:
    """Hears of folds, epochs and questions. A context manager: no bar is left when the audit is done or has failed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._training: TrainingProgress | None = None
        self._questions: QuestionProgress | None = None
        self._notes = TrainingProgress(stream)

    def __enter__(self) -> AuditProgress:
        return self

    def __exit__(self, *failure: object) -> None:
        self._close()

    def stage(self, text: str) -> None:
        """A new fold, or its judging."""
        self._close()
        print(text, file=self._stream or sys.stderr, flush=True)

    def epoch_done(self, record: EpochRecord) -> None:
        """An epoch of the fold at hand."""
        if self._training is None:
            self._close()
            self._training = TrainingProgress(self._stream).__enter__()
        self._training.epoch_done(record)

    def validated(self, record: ValidationRecord) -> None:
        """Folds have no validation split: never called, but a trainer may."""
        self._notes.validated(record)

    def asked(self, done: int, total: int) -> None:
        """So many questions are answered."""
        if self._questions is None:
            self._close()
            self._questions = QuestionProgress("judging", self._stream).__enter__()
        self._questions(done, total)

    def note(self, text: str) -> None:
        """Something to know, once."""
        (self._training or self._notes).note(text)

    def _close(self) -> None:
        for one in (self._training, self._questions):
            if one is not None:
                one.__exit__(None, None, None)
        self._training = self._questions = None
