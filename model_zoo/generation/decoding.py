"""Generated tokens as text."""

__all__ = ['TEXT_ENDS', 'StreamedText', 'text_ends', 'text_of']

#: tokens that stand between texts in the families' training
TEXT_ENDS = ('<|endoftext|>', '<eos>')


def text_ends(tokenizer):
    """Ids of the `TEXT_ENDS` in the vocabulary.

    Parameters
    ----------
    tokenizer : Tokenizer

    Returns
    -------
    list of int
    """
    known = tokenizer.vocab.token_to_idx
    return [known[token] for token in TEXT_ENDS if token in known]


def text_of(tokenizer, tokens, finish):
    """The text of generated tokens.

    Parameters
    ----------
    tokenizer : Tokenizer
    tokens : list of int
    finish : str or None
        See `Continuation`; after ``'stop'`` the last token is left out.

    Returns
    -------
    str
    """
    return tokenizer.decode(tokens[:-1] if finish == 'stop' else tokens)


class StreamedText:
    """The text of one sequence, as its tokens come from `stream`.

    Parameters
    ----------
    tokenizer : Tokenizer
    stop : sequence of str
        Texts that end the sequence, and aren't part of it.

    Attributes
    ----------
    tokens : list of int
    text : str
        What was returned so far; may lack the last tokens.
    is_stopped : bool
        Whether a text of `stop` has come.
    """

    def __init__(self, tokenizer, stop=()):
        self._tokenizer, self._stop = tokenizer, stop
        self.tokens, self.text, self.is_stopped = [], '', False

    def add(self, new):
        """Add a `NewToken`; returns the text that it completes, or an empty str."""
        self.tokens.append(new.token)
        text = text_of(self._tokenizer, self.tokens, new.finish)
        # the last bytes may be the beginning of a character
        if not new.finish and (not text.startswith(self.text) or text.endswith('\ufffd')):
            return ''
        places = [text.find(each, len(self.text)) for each in self._stop]
        if any(place >= 0 for place in places):
            self.is_stopped = True
            text = text[: min(place for place in places if place >= 0)]
        elif not new.finish:
            text = text[: self._certain(text)]
        added, self.text = text[len(self.text) :], text
        return added

    def _certain(self, text):
        """Where the end of `text` begins that may be the beginning of a text of `stop`."""
        for start in range(len(self.text), len(text)):
            if any(each.startswith(text[start:]) for each in self._stop):
                return start
        return len(text)
