"""Fine-tune BERT to label words: named entities, parts of speech, chunks.

    python finetune_tagging.py --train_file train.txt --dev_file valid.txt --test_file test.txt
    python finetune_tagging.py --data_dir conll2003 --label_column 1

The files have CoNLL's format: a word per line, with its columns, and an empty line between
sentences. The script has the flags of GluonNLP 0.8's finetune_ner.py and of the other training
scripts. Long sentences aren't cut; the model reads them in overlapping windows. ``--output_dir``
receives the log, ``results.json``, ``curves.png``, the parameters after the last epochs and the
best one, ``best_model/`` for ``BertForTokenClassification.from_pretrained``, checkpoints for
``--resume``, and ``dev_predictions.txt`` and ``test_predictions.txt``: copies of the files, with
the predicted labels as another column.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import TaggingSettings

main = training_main(__name__, TaggingSettings, 'tagging.TaggingTask', __doc__, 'finetune_tagging')
