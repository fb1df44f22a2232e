"""What Prometheus is told: counts, scores, and how long answers take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import isfinite
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client import generate_latest as latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from .engine import Engine
from .handlers import Handlers

__all__ = ["Metrics"]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, engine: Engine, handlers: Handlers) -> None:
        self._engine, self._handlers = engine, handlers
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ofw_requests", "Answers", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "ofw_request_seconds",
            "How long answers take",
            ["path"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._registry.register(self)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Note an answer."""
        both = self._known.get((path, status))
        if both is None:
            both = self._requests.labels(path, str(status)), self._seconds.labels(path)
            self._known[path, status] = both
        both[0].inc()
        if path != "/events":  # an answer that does not end
            both[1].observe(seconds)

    def text(self) -> bytes:
        """Return everything in the format of Prometheus."""
        return latest(self._registry)

    def describe(self) -> Iterator[Any]:
        """Return nothing: names are checked when they are collected."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        """Return what is counted elsewhere."""
        engine, learned = self._engine, self._engine.learned
        counts = {
            "ofw_events": ("Events learned", learned.n_events),
            "ofw_events_refused": ("Events refused", self._handlers.n_refused),
            "ofw_events_repeated": ("Events sent again", getattr(engine, "n_repeated", 0)),
            "ofw_groups": ("Groups of events on the disk", getattr(engine, "n_groups", 0)),
            "ofw_checkpoints": ("Checkpoints written", getattr(engine, "n_checkpoints", 0)),
        }
        for name, (what, n) in counts.items():
            yield CounterMetricFamily(name, what, value=n)
        for name, (what, value) in self._gauges().items():
            if isinstance(value, (int, float)) and isfinite(value):
                yield GaugeMetricFamily(name, what, value=value)

    def _gauges(self) -> dict[str, tuple[str, Any]]:
        engine, learned, facts = self._engine, self._engine.learned, self._engine.newest_facts
        lag = engine.lag()
        forgetting = facts.get("forgetting") or {}
        return {
            "ofw_lag_events": ("Events that wait to be learned", lag["events"]),
            "ofw_lag_seconds": ("Seconds behind the log", lag.get("seconds", 0.0)),
            "ofw_progressive_loss": ("Mean loss before learning", learned.progressive.mean),
            "ofw_progressive_loss_window": ("The same, newest 1000", learned.progressive.of_window),
            "ofw_served_loss": ("Mean loss of served predictions", learned.served.mean),
            "ofw_certificate": ("Gap when it was last computed", facts.get("gap")),
            "ofw_rank": ("Rank of the model, then", facts.get("rank")),
            "ofw_radius": ("Radius in use, then", facts.get("radius")),
            "ofw_half_life": ("Half-life in use, then", forgetting.get("half_life")),
            "ofw_memory_bytes": ("Memory of this process", memory()),
            "ofw_pending_predictions": (
                "Answers that labels may come for",
                len(self._handlers.pending),
            ),
        }


def memory() -> int | None:
    """Return the memory that this process holds, in bytes; None where that is not known."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
