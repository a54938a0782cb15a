"""Counts and times for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as MEDIA_TYPE
from prometheus_client.exposition import generate_latest

__all__ = ["MEDIA_TYPE", "ServiceMetrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, of when it began


class ServiceMetrics:
    """All that one service counts. Labels come from short lists of ours, never from a client."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("hynt_requests", "Requests, by path and status.", "path", "status")
        self.seconds = self._histogram(
            "hynt_request_seconds", "From the first byte of a request to its answer.", SECONDS
        )
        self.refused = self._counter("hynt_queue_refusals", "Requests refused because the queue was full.")
        self.jobs = self._counter("hynt_jobs", "Questions and other jobs that the model has done.")
        self.sizes = self._histogram("hynt_batch_size", "Questions that the model answered together.", SIZES)
        self.inference = self._histogram("hynt_inference_seconds", "Time of one batch in the model.", SECONDS)
        self.waited = self._histogram("hynt_queue_seconds", "How long a question waited for the model.", SECONDS)

    def batch(self, size: int, seconds: float) -> None:
        """Counts a batch of `size` questions that the model answered in `seconds`."""
        self.jobs.inc(size)
        self.sizes.observe(size)
        self.inference.observe(seconds)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Adds something to look at whenever it is asked for."""
        Gauge(name, text, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, registry=self._registry, buckets=bounds)
