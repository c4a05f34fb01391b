"""Fine-tune OpenAI GPT on the Story Cloze Test: choose one of two endings of a story.

    python finetune_gpt.py --model openai-gpt --output_dir out \\
        --train_file cloze_test_val__spring2016.csv

The defaults are the same as in pytorch-pretrained-bert's run_openai_gpt.py. Without ``--dev_file``,
``--n_valid`` stories of ``--train_file`` are held out, always the same ones; by default 374, a
fifth of the released file. ``--output_dir`` receives the log, ``results.json``, ``curves.png``, the
parameters after the last epochs and the best one, ``best_model/`` for
``OpenAIGPTDoubleHeadsModel.from_pretrained``, checkpoints for ``--resume``, and ``predictions.tsv``
of the best epoch. ``--only_inference`` evaluates a model.
"""

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import StorySettings

main = training_main(__name__, StorySettings, 'choice.StoryTask', __doc__, 'finetune_gpt')
