"""What a server counts, for Prometheus."""

__all__ = ['Metrics']

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server."""

    def __init__(self):
        import prometheus_client as prometheus

        self.registry = prometheus.CollectorRegistry()
        own = {'registry': self.registry}
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.PlatformCollector(registry=self.registry)
        self._requests = prometheus.Counter(
            'zoo_requests', 'Requests by route and HTTP status.', ['route', 'status'], **own
        )
        self._seconds = prometheus.Histogram(
            'zoo_request_seconds', 'Seconds from a request to the end of its answer.', ['route'],
            buckets=SECONDS, **own,
        )  # fmt: skip
        self._rows = prometheus.Histogram(
            'zoo_batch_rows', 'Rows of a batch.', ['model'], buckets=ROWS, **own
        )
        self._batch_seconds = prometheus.Histogram(
            'zoo_batch_seconds', 'Seconds of a batch.', ['model'], buckets=SECONDS, **own
        )
        self._tokens = prometheus.Counter(
            'zoo_tokens', 'Tokens that models have read, or a language model written.', ['model'],
            **own,
        )  # fmt: skip
        self._padding = prometheus.Counter(
            'zoo_padding_tokens', 'Tokens of padding that models have read.', ['model'], **own
        )
        self._queue = prometheus.Gauge(
            'zoo_queue', 'Requests that are accepted and unanswered.', ['model'], **own
        )

    def watch_queues(self, models):
        """Show the queues of `Models`."""
        for served in models:
            self._queue.labels(served.name).set_function(
                lambda name=served.name: models.get(name).worker.count
            )

    def count_request(self, route, status, seconds):
        """Count an answered request."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_counter(self, model):
        """``on_batch`` of a `BatchWorker`."""

        def count(rows, tokens, padded, seconds):
            self._rows.labels(model).observe(rows)
            self._batch_seconds.labels(model).observe(seconds)
            self._tokens.labels(model).inc(tokens)
            self._padding.labels(model).inc(padded - tokens)

        return count

    def token_counter(self, model):
        """``on_token`` of a `GenerationWorker`."""
        return self._tokens.labels(model).inc

    def text(self):
        """All counters in Prometheus's text format, and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST
