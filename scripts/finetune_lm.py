"""Continue the pre-training of BERT, or of a similar model, on your own text.

    python finetune_lm.py --train_file text.txt --model bert-base-uncased --output_dir out
    python finetune_classifier.py --model out/best_model ...

The text has one sentence per line, and blank lines between documents. Samples are made on the fly,
new ones in each epoch. BERT learns masked words and next sentences; RoBERTa, XLM-R and DistilBERT,
and BERT with ``--masked_lm_only``, masked words in samples of full sentences. Or make the samples
once, for several runs:

    python create_pretraining_data.py --input_file text.txt --output_dir samples \\
        --vocab vocab.txt --max_length 128 --max_predictions_per_seq 20
    python finetune_lm.py --pregenerated_data samples ...

The script has the flags of pytorch-pretrained-bert's simple_lm_finetuning.py and
finetune_on_pregenerated.py and of the other training scripts. ``--output_dir`` receives the log,
``results.json``, ``curves.png``, the parameters after the last epochs, checkpoints for
``--resume``, and ``best_model/`` for the other scripts: the epoch with the least loss on
``--dev_file`` or ``--dev_data``, or without these the last one.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import MaskedLMSettings

main = training_main(__name__, MaskedLMSettings, 'masked_lm.MaskedLMTask', __doc__, 'finetune_lm')
