"""Full sentences, packed to samples of the masked language model alone.

Source: Liu et al. 2019 (RoBERTa), section 4.2, "full-sentences": as many contiguous sentences as
fit; where a document ends, the next one begins behind a separator.
"""

import numpy as np

__all__ = ['pack_sentences']


def pack_sentences(tokens, documents, room, separator):
    """Pack the sentences of documents, one behind the other.

    Parameters
    ----------
    tokens : numpy.ndarray, int32
        Of all documents.
    documents : list of list of int
        For each, the places where its sentences begin, and its end. They follow one another.
    room : int
        Most tokens of a sample. A longer sentence is cut.
    separator : int
        Id of the token between two documents.

    Returns
    -------
    stream : numpy.ndarray, int32
        `tokens` with the separators.
    rows : numpy.ndarray, shape (samples, 2), int64
        Begin and end of each sample in `stream`; neither a separator comes first nor last.
    """
    begins, ends = [], []
    for number, bounds in enumerate(documents):  # so many separators are before it
        for begin, end in zip(bounds, bounds[1:]):
            cuts = [*range(begin, end, room), end]
            begins += [place + number for place in cuts[:-1]]
            ends += [place + number for place in cuts[1:]]
    stream = np.insert(tokens, [bounds[0] for bounds in documents[1:]], separator)
    rows, first = [], 0
    ends = np.array(ends)
    while first < len(begins):
        behind = int(np.searchsorted(ends, begins[first] + room, side='right'))
        rows.append((begins[first], ends[behind - 1]))
        first = behind
    return stream.astype(np.int32, copy=False), np.array(rows, np.int64)
