"""A decoder's graph for other runtimes, of `standard_operators`: the batch first."""

from ...layers.attention import BLOCKED

__all__ = ['encode']


def encode(F, model, words, mask, position_ids, past, position_weight):
    """`DecoderModel.encode` with an attention mask, and with keys and values apart.

    Parameters
    ----------
    F : module
    model : DecoderModel
    words : (..., length)
    mask : list of one (..., past_length + length)
        1 where a token is to be looked at, 0 elsewhere.
    position_ids : (..., length), optional
        By default 0, 1, ...
    past : list of [key, value], each (batch, heads, past_length, head_size), optional
        One pair a layer.
    position_weight : (positions, units)

    Returns
    -------
    states : list of (..., length, units)
    presents : list of [key, value], each (batch, heads, past_length + length, head_size)
    attentions : list of (batch, heads, length, past_length + length)
    """
    flat, mask = (F.reshape(each, shape=(-1, 0), reverse=True) for each in (words, mask[0]))
    if position_ids is None:
        places = F.expand_dims(F.contrib.arange_like(flat, axis=1), 0)  # (1, L)
    else:
        places = F.reshape(position_ids, shape=(-1, 0), reverse=True)
    sizes = dict(zip(('input_dim', 'output_dim'), model.position_weight.shape))
    x = F.broadcast_add(model.word_embed(flat), F.Embedding(places, position_weight, **sizes))
    blocked = _blocked(F, flat, mask)
    states, presents, attentions = [], [], []
    for layer, cell in enumerate(model.layers):
        states.append(x)
        x, attention, present = cell(x, blocked, None, None if past is None else past[layer])
        attentions.append(attention)
        presents.append(present)
    states.append(model.norm(x) if model.pre_norm else x)
    ends = {'lhs_begin': 0, 'lhs_end': 2, 'rhs_begin': 0, 'rhs_end': None}
    return [F.reshape_like(x, words, **ends) for x in states], presents, attentions


def _blocked(F, words, mask):
    """What is added to the scores (batch, heads, length, past_length + length)."""
    # counted from the end, where the words' places and the keys' are the same
    queries, keys = (F.reverse(F.contrib.arange_like(x, axis=1), axis=0) for x in (words, mask))
    ahead = F.broadcast_lesser(F.expand_dims(keys, 0), F.expand_dims(queries, 1))  # (L, P + L)
    padding = 1 - F.clip(F.cast(mask, 'float32'), 0, 1)
    for _ in range(2):
        ahead, padding = F.expand_dims(ahead, 0), F.expand_dims(padding, 1)
    return BLOCKED * F.broadcast_maximum(ahead, padding)
