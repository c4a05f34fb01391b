"""Fine-tune BERT on SWAG, or on other multiple-choice questions.

    python finetune_swag.py --data_dir swagaf/data --model bert-base-uncased \\
        --batch_size 16 --lr 2e-5 --max_length 80

The defaults are the same as in pytorch-pretrained-bert's run_swag.py. The files are SWAG's CSV, or
JSON lines with the same fields, with any number of endings. ``--output_dir`` receives the log,
``results.json``, ``curves.png``, the parameters after the last epochs and the best one,
``best_model/`` for ``BertForMultipleChoice.from_pretrained``, checkpoints for ``--resume``,
``dev_predictions.tsv`` and, if there is a test set, ``test_predictions.tsv``, of the best epoch.
``--only_inference`` evaluates a model.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import ChoiceSettings

main = training_main(__name__, ChoiceSettings, 'choice.ChoiceTask', __doc__, 'finetune_swag')
