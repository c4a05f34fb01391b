"""What a server may be asked for, and how much of it."""

from dataclasses import dataclass, field
from typing import Optional, Tuple

__all__ = ['Settings']


def _limit(default, text):
    """A field that is a flag of ``zoo serve``, too."""
    return field(default=default, metadata={'help': text})


@dataclass(frozen=True)
class Settings:
    """Limits of a server.

    Parameters
    ----------
    queue_size : int
        Most requests for one model that are accepted and unanswered. A further one is answered
        with status 429.
    timeout : float
        Seconds until an accepted request is answered with status 504.
    max_text : int
        Most characters of a text.
    max_texts : int
        Most texts of a request.
    max_rows : int
        Most rows that a request becomes: its texts, or each text with each of its labels or
        choices, or the windows of long texts.
    max_tokens : int
        Most tokens of these rows.
    max_answer : int
        Most bytes of an answer, about.
    max_body : int
        Most bytes of a request; and most characters of its rows, before they are cut.
    max_new_tokens : int
        Most tokens that a request may ask a language model for.
    max_sequences : int
        Most texts that a language model writes at once; further ones wait.
    allowed_hosts : tuple of str, optional
        Names that requests may have in their header ``Host``, in lower case and without a port;
        ``*`` is any. Those of loopback addresses always work there. Default: on loopback only
        those, elsewhere any.
    api_key : str, optional
        Without it requests are refused, but those for the server's health and documentation.
    """

    queue_size: int = _limit(256, 'requests a model')
    timeout: float = _limit(60.0, 'seconds for a request')
    max_text: int = _limit(100_000, 'characters of a text')
    max_texts: int = _limit(1024, 'texts of a request')
    max_rows: int = _limit(
        4096, 'texts of a request with each of their labels or choices, or their windows'
    )
    max_tokens: int = _limit(2**17, 'of these, altogether')
    max_answer: int = _limit(2**25, 'bytes of an answer, about')
    max_body: int = _limit(8 * 2**20, 'bytes of a request')
    max_new_tokens: int = _limit(1024, 'of a text')
    max_sequences: int = _limit(16, 'texts that a language model writes at once')
    allowed_hosts: Optional[Tuple[str, ...]] = None
    api_key: Optional[str] = None
