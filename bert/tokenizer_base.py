"""What BERT's tokenizers have in common."""

import collections

from model_zoo.errors import InputError
from model_zoo.tokenization.chunks import ChunkTokenizer

__all__ = ['BertTokenizerBase']


class BertTokenizerBase(ChunkTokenizer):
    """A vocabulary with BERT's special tokens, which stand around texts as BERT has them."""

    template = (('cls',), ('sep',), ('sep',))
    pair_type = 1

    def __init__(self, vocab, max_len=None):
        super().__init__(max_len)
        self.vocab = vocab
        self.ids_to_tokens = collections.OrderedDict(enumerate(vocab.idx_to_token))
        for role in ('unk', 'cls', 'sep'):
            if self._roles()[role] is None:
                raise InputError(
                    f'the vocabulary ({len(vocab)} tokens) names no {role} token; give it one, '
                    f'for example by gluonnlp.vocab.BERTVocab'
                )

    def _find_roles(self):
        roles = super()._find_roles()
        # as BERTSentenceTransform does for vocabularies without them
        roles['cls'] = roles['cls'] or roles['bos']
        roles['sep'] = roles['sep'] or roles['eos']
        return roles

    def normalized(self, word):
        return ' '.join(self.basic_tokenizer.tokenize(word))

    def ids_of_chunks(self, chunks):
        """Ids of texts without white space in them; the quickest way to them, for large corpora.

        Those of a text are those of its chunks, one after the other. Nothing is kept of them.

        Parameters
        ----------
        chunks : list of str

        Returns
        -------
        list of sequence of int
        """
        return [made.ids for made in self._learn(chunks)]
