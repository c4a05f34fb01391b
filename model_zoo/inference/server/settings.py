"""The limits of a server."""

from ...training.settings import Count, setting
from ...training.settings import Settings as FieldSettings


class Settings(FieldSettings):
    """Limits of a server; all but the last two are flags of ``zoo serve``."""

    title = 'limits'

    queue_size: Count = setting(256, 'unanswered requests for a model; others get status 429')
    timeout: float = setting(60.0, 'seconds until a request gets status 504', above=0)
    max_rows: Count = setting(4096, 'texts of a request, with each of their labels and windows')
    max_tokens: Count = setting(2**17, 'tokens of all these rows')
    max_answer: Count = setting(2**25, 'bytes of an answer, about')
    max_body: Count = setting(8 * 2**20, 'bytes of a request, and characters of its rows')
    max_new_tokens: Count = setting(1024, 'tokens that a request may ask for')
    max_sequences: Count = setting(16, 'texts that a language model writes at once')
    access_log: bool = setting(True, 'log a line per request, with its X-Request-Id')
    allowed_hosts: list[str] | None = setting(
        None, 'names that requests may have in their header Host, without a port; by default any'
    )
    api_key: str | None = setting(
        None, "requests without it are refused, except for the server's health and documentation"
    )
