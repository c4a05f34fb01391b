"""Transformer-XL's language model."""

import mxnet as mx

from model_zoo.blocks.stepwise import Stepwise
from model_zoo.blocks.task_mixin import TaskMixin
from model_zoo.generation import GenerationMixin
from model_zoo.layers.sequences import without_padding
from model_zoo.util.arrays import check_array

from .adaptive import AdaptiveSoftmax
from .memory import StreamReading
from .model import TransfoXLBlock, TransfoXLModel
from .steps import TransfoXLSegments, TransfoXLSteps


class TransfoXLLMHeadModel(Stepwise, TaskMixin, TransfoXLBlock, GenerationMixin):
    """Transformer-XL with an adaptive softmax.

    Parameters
    ----------
    transformer : TransfoXLConfig or TransfoXLModel
        A model is used as it is and shared; a configuration makes a new one.

    Inputs
    ------
    words, mems, valid_length
        See `TransfoXLModel`.
    labels : (batch, length), optional
        The words to predict at each position, usually the following ones. -1 and positions after
        the valid length are ignored.

    Outputs
    -------
    scores : (batch, length, vocab_size)
        Without labels: log-probabilities of the next word.
    losses : (batch, length)
        With labels: negative log-likelihood of each, 0 for ignored ones. (The original returns the
        losses in the order of the clusters, not of the positions; the mean is the same.)
    mems : list
        See `TransfoXLModel`.

    In generation, the prompts follow the memory of `init_mems`. Scores are the same as for the
    whole text in one segment. With `same_length` each position attends to the memory's length of
    text before it; without, to the whole text.

    Source: Dai et al., "Transformer-XL"; ``TransfoXLLMHeadModel`` of pytorch-pretrained-bert's
    modeling_transfo_xl.py.
    """

    label_inputs = {'labels': (2, 'vocab_size')}
    backbone = 'transformer'
    model_class = TransfoXLModel
    reading = StreamReading
    steps_class = TransfoXLSteps
    _segments = None

    def __init__(self, transformer, prefix=None, params=None):
        super().__init__(transformer, prefix=prefix, params=params)
        with self.name_scope():
            embedding = self.transformer.word_embed
            self.softmax = AdaptiveSoftmax(self.config, embedding, prefix='softmax_')

    def run(self, words, mems, valid_length, labels):
        if labels is None or isinstance(words, mx.sym.Symbol):
            return super().run(words, mems, valid_length, labels)
        # two graphs: between them the labels are assigned to their clusters
        hidden, mems = self.transformer(words, mems, valid_length)
        labels = without_padding(mx.nd, labels, valid_length)
        losses = self.softmax.loss(hidden.reshape((-3, 0)), labels.reshape((-1,)))
        return losses.reshape(words.shape), mems

    def hybrid_forward(self, F, words, mems=None, valid_length=None, labels=None):
        hidden, mems = self.transformer(words, mems, valid_length)
        scores = self.softmax(F.reshape(hidden, shape=(-3, 0)))
        scores = F.reshape_like(scores, words, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
        if labels is None:
            return scores, mems
        # inside another block's graph, which can't be cut in two
        labels = without_padding(F, labels, valid_length)
        if self.precision == 'float16':
            scores = F.cast(scores, 'float32')
        return -F.pick(scores, labels, axis=-1) * (labels >= 0), mems

    def read(self, words, labels, state=None):
        """Return the losses of the next segment of a text, without training.

        They equal the losses of ``block(words, mems, labels=labels)``. The memory holds keys and
        values instead of hidden states, so these aren't recomputed for each segment. With an
        extension (`ext_len`) it holds hidden states.

        Parameters
        ----------
        words : (batch, length)
            Token ids, without padding.
        labels : (batch, length)
            The words to predict at each position; -1 is ignored.
        state : optional
            Returned by the call for the previous segment, with the same weights. None: the text
            begins, after the memory of `init_mems`.

        Returns
        -------
        losses : (batch, length)
            No gradient passes through them.
        state
            For the next segment.
        """
        with mx.autograd.pause():
            if self.base.ext_len or not self.base.mem_len:
                return self(words, state, labels=labels)
            self.check_labels({'words': words, 'labels': labels})
            if state is None:
                state = self._get_segments().start(words, self.checked_start(words)['mems'])
            else:
                self.check_text(words, None)
                check_array('state', state.counts, words.shape[:1])
            hidden, state = self._get_segments().read(words, state)
            losses = self.softmax.loss(hidden, labels.reshape((-1,)))
            return losses.reshape(words.shape), state

    def _get_segments(self):
        if self._segments is None:
            self._segments = TransfoXLSegments(self.transformer)
        return self._segments

    # -- generation -----------------------------------------------------------------------------

    def _clear_cached_op(self):
        super()._clear_cached_op()
        self._segments = None  # made for the former lengths
