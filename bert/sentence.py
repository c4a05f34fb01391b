"""One vector a sentence as a block, pooling and normalization included, for exports."""

from model_zoo.errors import UnknownNameError
from model_zoo.layers.attention import BLOCKED
from model_zoo.layers.sequences import padding_of, positions_of

from .heads import BertTask

__all__ = ['BertSentenceEncoder']

_POOLINGS = ('mean', 'cls', 'max')


class BertSentenceEncoder(BertTask):
    """The vector of a sentence, from the last layer.

    With the same weights it gives what ``BertEmbedding.sentence_vectors`` gives; as a block, it can
    be exported and trained.

    Parameters
    ----------
    bert : BertConfig or BertModel
    pooling : {'mean', 'cls', 'max'}
        ``'mean'`` and ``'max'`` of the vectors of all tokens, [CLS] and [SEP] included; ``'cls'``:
        that of [CLS].
    normalize : bool
        Whether to scale the vectors to Euclidean length 1.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.

    Outputs
    -------
    (batch, units)
    """

    huggingface_name = 'BertModel'  # it has no parameters of its own

    def __init__(
        self, bert, pooling='mean', normalize=False, prefix=None, params=None, **options
    ):
        if pooling not in _POOLINGS:
            raise UnknownNameError.of('pooling', pooling, _POOLINGS)
        super().__init__(bert, prefix=prefix, params=params, **options)
        self._pooling, self._normalize = pooling, normalize

    def hybrid_forward(self, F, words, token_types=None, valid_length=None, head_mask=None):
        encoded = self.encode(words, token_types, valid_length, head_mask=head_mask)
        x = self._pool(F, encoded.sequence, valid_length)  # (B, C)
        if self._normalize:
            length = F.sqrt(F.sum(F.square(x), axis=1, keepdims=True))
            x = F.broadcast_div(x, F.maximum(length, 1e-12))
        return self.join_outputs(x, encoded.attentions)

    def _pool(self, F, sequence, valid_length):
        """One vector of each row of the sequence (B, L, C)."""
        if self._pooling == 'cls':
            first = F.slice_axis(sequence, axis=1, begin=0, end=1)
            return F.reshape(first, shape=(0, -1))
        if valid_length is None:
            return getattr(F, self._pooling)(sequence, axis=1)
        padding = padding_of(F, positions_of(F, sequence, axis=1), valid_length)  # (B, L)
        dtype = 'float16' if self.precision == 'float16' else 'float32'
        padding = F.cast(F.expand_dims(padding, 2), dtype)
        if self._pooling == 'max':
            return F.max(F.broadcast_add(sequence, BLOCKED * padding), axis=1)
        total = F.sum(F.broadcast_mul(sequence, 1 - padding), axis=1)
        return F.broadcast_div(total, F.maximum(F.sum(1 - padding, axis=1), 1))
