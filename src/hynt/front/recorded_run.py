"""A run as far as its folder tells: its manifest, how training went, and how it looks where it is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from hynt.asking.predictor import Predictor
from hynt.errors import UsageError
from hynt.markup import shown
from hynt.names import plural
from hynt.results import box, pairs

if TYPE_CHECKING:
    from hynt.front.jobs import TemporaryFolder

Note: TypeAlias = Callable[[str], None]


class RecordedRun(Predictor):
    """A run that can be asked, and that says what it is."""

    def __init__(
        self,
        run: str | os.PathLike[str],
        device: str = "auto",
        note: Note = lambda text: None,
        kept: TemporaryFolder | None = None,
        version: int | None = None,
    ) -> None:
        """`kept`: the temporary folder that it lies in, which is removed once the run is no longer in use."""
        super().__init__(run, device, note, version)
        self._kept = kept

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run says of itself: model, graph, training, and the hash of each file.

        >>> run.manifest["model_name"]
        'hynt'
        """
        return self.saved.manifest

    def history(self) -> list[dict[str, Any]]:
        """How training went: a row per epoch, and a row per validation.

        >>> run.history()[0]["epoch"]
        1
        """
        from hynt.runs import RECORD
        from hynt.runs.place import read_record

        return read_record(self.path / RECORD)

    def _as_trained(self, verb: str) -> Self:
        """The run over the graph that it was trained on: this one, or the same before any update."""
        self._refuse_elsewhere(verb)
        return self._at(0) if self.version else self

    def _at(self, version: int) -> Self:
        """The run at a version; its graph, and weights that are loaded already, are not read again."""
        made = type(self)(self.path, self._device, self.note, self._kept, version)
        made.__dict__["saved"] = self.saved
        if "loaded" in self.__dict__:
            made.__dict__["trained"] = self.loaded.home or self.loaded
        return made

    def _refuse_elsewhere(self, verb: str) -> None:
        if self._elsewhere:
            raise UsageError(
                f"{verb} works on a run's own graph, and this run is asked of another.",
                where=verb,
                advice="Take the run itself, from hynt.load.",
            )

    def __repr__(self) -> str:
        return shown(f"<run of {self._told['model']} on {self._told['graph']}: {self._trained}, {self._place}>")

    def _repr_html_(self) -> str:
        told = self._told
        about = [("model", told["model"]), ("graph", told["graph"]), ("training", self._trained)]
        if told["best"]:
            best = told["best"]
            about.append(("best on validation", f"{best['metric']} {best['value']:.4f} at epoch {best['epoch']}"))
        return box("run", pairs([*about, ("kept", self._place)]))

    @property
    def _told(self) -> dict[str, Any]:
        manifest = self.manifest
        training = manifest.get("training") or {}
        graph = manifest["graph"]["name"] or "a graph without a name"
        return {"model": manifest["model_name"], "graph": graph, "best": training.get("best"), **training}

    @property
    def _trained(self) -> str:
        if "training" not in self.manifest:
            return "not finished"
        epochs = max((line["epoch"] for line in self.history() if "loss" in line), default=0)
        return f"{plural(epochs, 'epoch')}, finished" if epochs else "finished"

    @property
    def _place(self) -> str:
        return "in a temporary folder" if self._kept is not None else f"in {self.path}"
