"""BERT's pre-training heads: the masked language model and next sentence prediction."""

from model_zoo.errors import InputError
from model_zoo.layers.losses import cross_entropy

from .task import BertTask, check_labels

__all__ = ['BertForMaskedLM', 'BertForNextSentencePrediction', 'BertForPreTraining']


class BertForPreTraining(BertTask):
    """Masked language model and next sentence prediction together.

    Inputs
    ------
    words, token_types, valid_length, masked_positions, masked_lm_labels, head_mask
        See `BertForMaskedLM`.
    next_sentence_label
        See `BertForNextSentencePrediction`.

    Outputs
    -------
    With both labels the sum of the two losses, (1,); otherwise the scores:
    (batch, positions, vocab_size) and (batch, 2).
    """

    parts = {'use_pooler': True, 'use_decoder': True, 'use_classifier': True}
    #: what a pre-training of it minimizes
    pretraining_terms = ('mlm', 'nsp')

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        if (masked_lm_labels is None) != (next_sentence_label is None):
            raise InputError('give both masked_lm_labels and next_sentence_label, or neither')
        self.check_inputs(words, token_types, valid_length, masked_positions)
        places = words if masked_positions is None else masked_positions
        check_labels('masked_lm_labels', masked_lm_labels, places, 2, self.config.vocab_size)
        check_labels('next_sentence_label', next_sentence_label, words, 1, 2)
        return super().__call__(
            words, token_types, valid_length, masked_positions, masked_lm_labels,
            next_sentence_label, self.full_head_mask(head_mask),
        )  # fmt: skip

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        encoded = self.encode(words, token_types, valid_length, masked_positions, head_mask)
        if masked_lm_labels is None:
            result = [encoded.masked_lm, encoded.next_sentence]
        else:
            result = cross_entropy(F, encoded.masked_lm, masked_lm_labels)
            result = result + cross_entropy(F, encoded.next_sentence, next_sentence_label)
        return self.join_outputs(result, encoded.attentions)


class BertForMaskedLM(BertTask):
    """Masked language model.

    Inputs
    ------
    words, token_types, valid_length, masked_positions, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, positions), optional
        Word ids; -1 is left out. Without masked positions: (batch, length).

    Outputs
    -------
    The loss, (1,), or scores of (batch, positions, vocab_size).
    """

    parts = {'use_pooler': False, 'use_decoder': True}
    pretraining_terms = ('mlm',)

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        head_mask=None,
    ):
        self.check_inputs(words, token_types, valid_length, masked_positions)
        places = words if masked_positions is None else masked_positions
        check_labels('masked_lm_labels', masked_lm_labels, places, 2, self.config.vocab_size)
        return super().__call__(
            words, token_types, valid_length, masked_positions, masked_lm_labels,
            self.full_head_mask(head_mask),
        )  # fmt: skip

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        head_mask=None,
    ):
        encoded = self.encode(words, token_types, valid_length, masked_positions, head_mask)
        result = encoded.masked_lm
        if masked_lm_labels is not None:
            result = cross_entropy(F, result, masked_lm_labels)
        return self.join_outputs(result, encoded.attentions)


class BertForNextSentencePrediction(BertTask):
    """Next sentence prediction.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    next_sentence_label : (batch,), optional
        0: the second sentence follows the first; 1: it's a random one.

    Outputs
    -------
    The loss, (1,), or scores of (batch, 2).
    """

    parts = {'use_pooler': True, 'use_classifier': True}

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        self.check_inputs(words, token_types, valid_length)
        check_labels('next_sentence_label', next_sentence_label, words, 1, 2)
        head_mask = self.full_head_mask(head_mask)
        return super().__call__(words, token_types, valid_length, next_sentence_label, head_mask)

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        encoded = self.encode(words, token_types, valid_length, None, head_mask)
        result = encoded.next_sentence
        if next_sentence_label is not None:
            result = cross_entropy(F, result, next_sentence_label)
        return self.join_outputs(result, encoded.attentions)
