"""Fine-tune BERT for classification or regression of sentences and sentence pairs.

    python finetune_classifier.py --task_name MRPC --batch_size 32 --epochs 3 --lr 2e-5
    python finetune_classifier.py --task_name custom --train_file train.tsv --dev_file dev.tsv \\
        --text_columns text --label_column label

Flags and defaults are the same as in GluonNLP 0.8. ``--output_dir`` receives the log,
``results.json``, ``curves.png``, the parameters after the last epochs and the best one,
``best_model/`` for ``BertForSequenceClassification.from_pretrained``, the predictions for the test
set in GLUE's format with their probabilities, and checkpoints for ``--resume``.

    python finetune_classifier.py --task_name MRPC --do_predict --model output_dir/best_model

predicts the test set with a trained model and evaluates nothing. Like Google's run_classifier.py it
also writes ``test_results.tsv``, with the probabilities of the classes, a line per sample.
"""

from model_zoo.app import cli
from model_zoo.app.originals import translate
from model_zoo.tasks.settings import ClassificationSettings


def main(argv=None):
    settings, flags = translate(ClassificationSettings, __doc__, argv, 'finetune_classifier')
    from model_zoo.app.run_classifier import RunClassifierTask
    from model_zoo.app.trainer import run_task

    run_task(RunClassifierTask(settings, flags.do_eval, flags.do_predict))


if __name__ == '__main__':
    cli.run_script(main)
