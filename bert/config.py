"""BERT's hyper-parameters."""

import dataclasses
import operator
from typing import Dict, List, Optional

from model_zoo.config import Config
from model_zoo.errors import InputError
from model_zoo.layers.activations import check_activation

__all__ = ['BertConfig']


@dataclasses.dataclass
class BertConfig(Config):
    """Hyper-parameters of a BERT model, named as in Google's ``bert_config.json``.

    Parameters
    ----------
    vocab_size : int
        Number of word pieces.
    hidden_size : int
        Units of the encoder (H in the paper, "units" in GluonNLP).
    num_hidden_layers : int
        Number of encoder layers (L in the paper).
    num_attention_heads : int
        Attention heads a layer (A in the paper); must divide `hidden_size`.
    intermediate_size : int
        Units of the feed-forward layer ("hidden_size" in GluonNLP).
    hidden_act : {'gelu', 'gelu_new', 'relu', 'swish', 'tanh'}
        Activation of the feed-forward layer.
    hidden_dropout_prob, attention_probs_dropout_prob : float
        Dropout rates.
    max_position_embeddings : int
        Length of the position table: the longest sequence that the model takes.
    type_vocab_size : int
        Number of token types.
    initializer_range : float
        Standard deviation of the normal initializer.
    layer_norm_eps : float
    num_labels : int
        Outputs of a task head.
    pruned_heads : dict of int to list of int, optional
        Heads that were removed, by layer.

    Raises
    ------
    InputError
        If a value can't be right; the message names the field.

    References
    ----------
    Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
    Understanding", section 3; ``BertConfig`` of google-research/bert's modeling.py.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = 'gelu'
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    num_labels: int = 2
    pruned_heads: Optional[Dict[int, List[int]]] = None

    def __post_init__(self):
        super().__post_init__()
        self._check_positive(
            'vocab_size',
            'hidden_size',
            'num_hidden_layers',
            'num_attention_heads',
            'intermediate_size',
            'max_position_embeddings',
            'type_vocab_size',
            'num_labels',
        )
        self._check_rate('hidden_dropout_prob', 'attention_probs_dropout_prob')
        self._check_not_negative('initializer_range', 'layer_norm_eps')
        if not isinstance(self.hidden_act, str):
            raise InputError(f'hidden_act must be a name, but is {self.hidden_act!r}')
        check_activation(self.hidden_act)
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                f'hidden_size {self.hidden_size} is not a multiple of '
                f'num_attention_heads {self.num_attention_heads}'
            )
        given, self.pruned_heads = self.pruned_heads, {}
        if given is not None:
            try:
                self.pruned_heads = self.add_pruned(given)
            except InputError as error:
                raise InputError(f'pruned_heads: {error}') from error

    @property
    def head_size(self):
        """Units of one attention head."""
        return self.hidden_size // self.num_attention_heads

    def kept_heads(self, layer):
        """The heads that `layer` still has, by their first numbers."""
        pruned = self.pruned_heads.get(layer, ())
        return [head for head in range(self.num_attention_heads) if head not in pruned]

    def add_pruned(self, heads_to_prune):
        """`pruned_heads` with more heads.

        Parameters
        ----------
        heads_to_prune : dict of int to list of int
            Layer -> heads, by their first numbers.

        Returns
        -------
        dict of int to list of int

        Raises
        ------
        InputError
            If a layer or head doesn't exist, or a layer would be left without heads.
        """
        merged = {layer: set(heads) for layer, heads in self.pruned_heads.items()}
        for layer, heads in _as_numbers(heads_to_prune).items():
            if not 0 <= layer < self.num_hidden_layers:
                raise InputError(
                    f'there is no layer {layer}: the model has {self.num_hidden_layers}'
                )
            wrong = [head for head in heads if not 0 <= head < self.num_attention_heads]
            if wrong:
                raise InputError(
                    f'layer {layer} has no head {wrong[0]}: it has {self.num_attention_heads}'
                )
            merged.setdefault(layer, set()).update(heads)
            if len(merged[layer]) == self.num_attention_heads:
                raise InputError(f'layer {layer} would be left without heads')
        return {layer: sorted(heads) for layer, heads in merged.items() if heads}


def _as_numbers(heads_to_prune):
    """A dict of ints to lists of ints; JSON turns the keys of a dict into strings."""
    try:
        return {
            int(layer) if isinstance(layer, str) else operator.index(layer): [
                operator.index(head) for head in heads
            ]
            for layer, heads in heads_to_prune.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f'the heads must be a dict of layers to lists of heads, but are {heads_to_prune!r}'
        ) from error
