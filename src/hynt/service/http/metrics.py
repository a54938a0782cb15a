"""Counts and times for Prometheus, in its text format. A few lines of our own: no package, no registry, no threads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Counter:
    """Goes up, by the values of its labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.text, self.labels = name, text, tuple(labels)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        """`values` are those of the labels, in order; every one must come from a short list of ours, never a client."""
        self._values[values] = self._values.get(values, 0.0) + by

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} counter"
        for values, number in sorted(self._values.items()):
            yield f"{self.name}{_labelled(self.labels, values)} {number:g}"


class Gauge:
    """What a function says at the moment of asking."""

    def __init__(self, name: str, text: str, value: Callable[[], float]) -> None:
        self.name, self.text, self._value = name, text, value

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} gauge"
        yield f"{self.name} {self._value():g}"


class Histogram:
    """How often a value was at most so much."""

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text, self.bounds = name, text, tuple(bounds)
        self._counts, self._sum = [0] * (len(self.bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} histogram"
        total = 0
        for bound, count in zip((*map("{:g}".format, self.bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{self.name}_bucket{{le="{bound}"}} {total}'
        yield f"{self.name}_sum {self._sum:.9g}"
        yield f"{self.name}_count {total}"


class ServiceMetrics:
    """All that a service counts."""

    def __init__(self) -> None:
        self.requests = Counter("hynt_requests_total", "Requests, by path and status.", ("path", "status"))
        self.seconds = Histogram("hynt_request_seconds", "From the first byte of a request to its answer.", SECONDS)
        self.refused = Counter("hynt_queue_refusals_total", "Requests refused because the queue was full.")
        self.jobs = Counter("hynt_jobs_total", "Questions and other jobs that the model has done.")
        self.sizes = Histogram("hynt_batch_size", "Questions that the model answered together.", SIZES)
        self.inference = Histogram("hynt_inference_seconds", "Time of one batch in the model.", SECONDS)
        self.waited = Histogram("hynt_queue_seconds", "How long a question waited for the model.", SECONDS)
        self.gauges: list[Gauge] = []

    def batch(self, size: int, seconds: float) -> None:
        """One batch was answered."""
        self.jobs.add(by=size)
        self.sizes.observe(size)
        self.inference.observe(seconds)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Adds something to look at whenever it is asked for."""
        self.gauges.append(Gauge(name, text, value))

    def text(self) -> str:
        """What Prometheus reads."""
        parts: tuple[Counter | Gauge | Histogram, ...] = (
            self.requests,
            self.seconds,
            self.refused,
            self.jobs,
            self.sizes,
            self.inference,
            self.waited,
            *self.gauges,
        )
        return "\n".join(line for part in parts for line in part.lines()) + "\n"


def _labelled(labels: Sequence[str], values: Sequence[str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(labels, values, strict=True))
    return "{" + pairs + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
