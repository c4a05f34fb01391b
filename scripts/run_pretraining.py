"""Pre-train BERT, on masked words and next sentences, or a model like it, on masked words.

    python create_pretraining_data.py --input_file sample_text.txt --output_dir out ...
    python run_pretraining.py --batch_size 32 --lr 2e-5 --train_file 'out/*.npz' \\
        --dev_file 'out/*.npz' --training_steps 20 --warmup_ratio 0.5 --pretrained --output_dir ckpt

The flags are the same as in GluonNLP's scripts of this name, 0.7.1 and 0.10, but the default of
``--dtype`` is float32. ``--output_dir`` receives the log, checkpoints (``--resume`` with the same
command resumes from the newest), ``results.json``, ``curves.png``, and at the end ``model/``
for ``BertForPreTraining.from_pretrained`` and for ``--model`` of the fine-tuning scripts.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import PretrainingSettings

PARTS = 'masked_lm.PretrainingTask', __doc__, 'run_pretraining', 'pretraining.PretrainingTrainer'
main = training_main(__name__, PretrainingSettings, *PARTS)
