"""Parameters and metrics to MLflow: the server that MLFLOW_TRACKING_URI names, or a SQLite file beside the runs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from hynt.tracking.tracker import Ending, Tracked, missing

EXPERIMENT = "hynt"
_KEY = "hynt.run"
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_LONGEST_VALUE = 500  # characters that MLflow takes of a parameter
_AT_ONCE = 100  # parameters that it takes in one call


class ToMlflow:
    """One run in the experiment `hynt`."""

    def __init__(self) -> None:
        try:
            from mlflow import entities
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise missing("MLflow", "mlflow") from None
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of the tables it makes
        self._client_of, self._entities = MlflowClient, entities

    def begin(self, run: Tracked) -> None:
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(run.folder / 'mlflow.db').resolve()}"
        if uri.startswith("sqlite"):
            run.folder.mkdir(parents=True, exist_ok=True)
        self._client: Any = self._client_of(tracking_uri=uri)
        known = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = known.experiment_id if known else self._client.create_experiment(EXPERIMENT)
        found = self._client.search_runs([experiment], f"tags.`{_KEY}` = '{run.key}'", max_results=1)
        if found:
            self._run = found[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
            return
        self._run = self._client.create_run(experiment, run_name=run.name, tags={**run.tags, _KEY: run.key}).info.run_id
        texts = [(path, str(value)[:_LONGEST_VALUE]) for path, value in run.settings.items()]
        for first in range(0, len(texts), _AT_ONCE):
            parameters = [self._entities.Param(*text) for text in texts[first : first + _AT_ONCE]]
            self._client.log_batch(self._run, params=parameters)

    def log(self, values: Mapping[str, float], step: int) -> None:
        now = int(1000 * time.time())
        # It takes no @ in a name: hits@10 becomes hits_at_10.
        named = {name.replace("@", "_at_"): value for name, value in values.items()}
        metrics = [self._entities.Metric(name, value, now, step) for name, value in named.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def end(self, how: Ending) -> None:
        self._client.set_terminated(self._run, status=_STATUS[how])
