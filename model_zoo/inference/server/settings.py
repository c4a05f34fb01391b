"""The limits of a server."""

from ...training.settings import Settings as FieldSettings
from ...training.settings import setting, settings


@settings()
class Settings(FieldSettings):
    """Limits of a server; all but the last two are flags of ``zoo serve``."""

    title = 'limits'

    queue_size: int = setting(
        256,
        'requests for a model that are accepted and unanswered; a further one is answered '
        'with status 429',
        at_least=1,
    )
    timeout: float = setting(
        60.0, 'seconds until an accepted request is answered with status 504', above=0
    )
    max_rows: int = setting(
        4096,
        'texts of a request with each of their labels or choices, or their windows',
        at_least=1,
    )
    max_tokens: int = setting(2**17, 'tokens of all these rows', at_least=1)
    max_answer: int = setting(2**25, 'bytes of an answer, about', at_least=1)
    max_body: int = setting(
        8 * 2**20, 'bytes of a request; and characters of its rows, before they are cut', at_least=1
    )
    max_new_tokens: int = setting(1024, 'tokens that a request may ask for', at_least=1)
    max_sequences: int = setting(
        16, 'texts that a language model writes at once; further ones wait', at_least=1
    )
    allowed_hosts: list[str] | None = setting(
        None, 'names that requests may have in their header Host, without a port; by default any'
    )
    api_key: str | None = setting(
        None, "requests without it are refused, except for the server's health and documentation"
    )
