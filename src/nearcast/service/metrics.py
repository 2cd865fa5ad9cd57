"""What Prometheus reads at /metrics. Every overflow and rejection has a counter."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.accepted = self._counter("messages_accepted", "Messages that were logged")
        self.rejected = self._counter("rows_rejected", "Rows that could not be used", "kind")
        self.matched = self._counter("deliveries_matched", "Pairs of a message and a subscription")
        self.delivered = self._counter("events_delivered", "Events that were sent", "sink")
        self.failed = self._counter("requests_failed", "Answers of 4xx and 5xx", "status")
        self.unmatched = self._counter("batches_unmatched", "Logged batches whose matching failed; readers use the log")
        self.moved = self._counter("moves", "Regions that moved")
        self.purged = self._counter("messages_purged", "Messages that the retention removed")
        self.webhook_failures = self._counter("webhook_failures", "Attempts that an endpoint did not take")
        self.dead_letters = self._counter("webhook_dead_letters", "Events given up after all attempts")
        self.lag = Gauge(
            "nearcast_lag_messages",
            "Messages of the log between the end and the reader that is furthest behind",
            ["sink"],
            registry=self.registry,
        )
        self.publish_seconds = Histogram(
            "nearcast_publish_seconds",
            "From the body to the answer, on disk and matched",
            buckets=SECONDS,
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"nearcast_{name}", text, labels, registry=self.registry)

    def watch(self, name: str, text: str, read: object) -> None:
        """A gauge that is read when it is asked for."""
        gauge = Gauge(f"nearcast_{name}", text, registry=self.registry)
        gauge.set_function(read)  # type: ignore[arg-type]

    def text(self) -> bytes:
        return generate_latest(self.registry)
