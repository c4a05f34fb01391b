"""Fine-tune BERT for question answering on SQuAD 1.1 and 2.0.

    python finetune_squad.py --optimizer adam --batch_size 12 --lr 3e-5 --epochs 2 --gpu
    python finetune_squad.py --train_file train-v2.0.json --dev_file dev-v2.0.json --version_2

Flags and defaults are the same as in GluonNLP 0.10's script of this name. The vocabulary says
whether text is lower-cased; ``--uncased`` only checks that. ``--output_dir`` receives the log,
``results.json`` with the official metrics, ``curves.png``, the parameters after the last epochs and
the best one, ``best_model/`` for ``BertForQuestionAnswering.from_pretrained``,
``predictions.json``, ``nbest_predictions.json``, ``null_odds.json`` and checkpoints for
``--resume``.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import SquadSettings

main = training_main(__name__, SquadSettings, 'squad.SquadTask', __doc__, 'finetune_squad')
