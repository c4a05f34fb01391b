"""Fine-tune a sentence encoder: a BERT with similar vectors for texts that belong together.

    python finetune_embedding.py --train_file pairs.tsv --dev_file dev.tsv --batch_size 64
    python finetune_embedding.py --data_dir STS-B --epochs 4 --batch_size 16 --lr 2e-5

The files are tables or JSON lines with pairs of texts, triplets (a text, one that matches it and
one that doesn't), or pairs with a score. ``--output_dir`` receives the log, ``results.json``,
``curves.png``, the parameters after the last epochs and the best one, checkpoints for
``--resume``, the similarities in the test set, and ``best_model/``, a folder that `BertEmbedding`
and sentence-transformers load.

    python finetune_embedding.py --only_inference --model best_model --dev_file dev.tsv

evaluates an encoder without training it.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import SentenceSettings

main = training_main(
    __name__, SentenceSettings, 'sentences.SentenceTask', __doc__, 'finetune_embedding'
)
