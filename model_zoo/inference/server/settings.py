"""What a server may be asked for, and how much of it."""

from dataclasses import dataclass
from typing import Optional

__all__ = ['Settings']


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
    max_body : int
        Most bytes of a request.
    max_new_tokens : int
        Most tokens that a request may ask a language model for.
    max_sequences : int
        Most texts that a language model writes at once; further ones wait.
    api_key : str, optional
        Without it requests are refused, but those for the server's health and documentation.
    """

    queue_size: int = 256
    timeout: float = 60.0
    max_text: int = 100_000
    max_texts: int = 1024
    max_body: int = 8 * 2**20
    max_new_tokens: int = 1024
    max_sequences: int = 16
    api_key: Optional[str] = None
