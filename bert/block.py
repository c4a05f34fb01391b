"""What BERT's model and its task blocks share: names in files, and the checks of inputs."""

import mxnet as mx

from model_zoo.blocks.heads import AttentionBlock
from model_zoo.checkpoint.mapping import Padded
from model_zoo.errors import InputError
from model_zoo.layers.sequences import Mask
from model_zoo.util.checks import check_ids, check_range, check_shape

from .catalogue import ARCHITECTURES
from .config import BertConfig
from .mapping import bert_mappings

__all__ = ['BertBlock']


class BertBlock(AttentionBlock):
    """Base of `BertModel` and of the task blocks."""

    config_class = BertConfig
    architectures = ARCHITECTURES
    #: False where they are accepted, so that all heads are called alike, and left out
    takes_token_types = True
    optional_parts = ('pooler', 'decoder', 'classifier')
    #: the padding of `FeedForward` doesn't belong into files
    stored_as = (
        (r'encoder\.layers\.\d+\.ffn\.ffn_1\.(weight|bias)$', Padded(0)),
        (r'encoder\.layers\.\d+\.ffn\.ffn_2\.weight$', Padded(1)),
    )

    def __call__(self, words, token_types, valid_length, *others):
        if self._is_mask(words, valid_length):
            valid_length = Mask([valid_length])
        if not self.takes_token_types:
            token_types = None
        return super().__call__(words, token_types, valid_length, *others)

    @staticmethod
    def _is_mask(words, valid_length):
        """Whether an attention mask is given in the place of a valid length."""
        arrays = isinstance(words, mx.nd.NDArray) and isinstance(valid_length, mx.nd.NDArray)
        return arrays and words.ndim == valid_length.ndim

    @classmethod
    def name_maps(cls, config):
        return bert_mappings()

    def mappings(self):
        return bert_mappings(getattr(self, 'dropout_rate', 0))

    @property
    def fuses_in_onnx(self):
        """With one text an example."""
        return self.word_axes == 2

    @property
    def context_length(self):
        """The most positions that the model takes."""
        return self.config.position_rows

    def example_makers(self, batch_size, length, random):
        types, rows = self.config.type_vocab_size, self._example_rows(batch_size)
        return {
            **super().example_makers(batch_size, length, random),
            'token_types': lambda: random.randint(0, types, (*rows, length)),
            'attention_mask': lambda: Mask([self._example_mask((*rows, length), random)]),
            'masked_positions': lambda: random.randint(0, length, (batch_size, min(4, length))),
        }

    @staticmethod
    def _example_mask(shape, random):
        """An attention mask with holes, and something to look at in each row."""
        mask = random.randint(0, 2, shape)
        mask[..., 0] = 1
        return mask

    def check_inputs(self, words, token_types, valid_length, masked_positions=None):
        """Raise InputError if the inputs can't be right."""
        if isinstance(words, mx.sym.Symbol):  # in a graph there are no values
            return
        if isinstance(valid_length, Mask):  # of a head, which has checked it
            return
        is_mask = self._is_mask(words, valid_length)
        self.check_text(words, None if is_mask else valid_length)
        if is_mask:
            check_shape('valid_length', valid_length, words.shape)
            check_range('the attention mask', valid_length, 0, 2)
        if token_types is not None and self.takes_token_types:
            check_shape('token_types', token_types, words.shape)
            check_ids('token_types', token_types, self.config.type_vocab_size)
        if masked_positions is not None:
            self.check_positions(words, masked_positions)

    def check_positions(self, words, masked_positions):
        """Raise InputError if `masked_positions` can't be right; `words` have been checked."""
        if not self.base.has_decoder:
            raise InputError('masked_positions needs a model with use_decoder=True')
        check_shape('masked_positions', masked_positions, (words.shape[0], -1))
        check_range('masked_positions', masked_positions, 0, words.shape[1])
