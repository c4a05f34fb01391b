"""Takes the flags of pytorch-pretrained-bert's run_openai_gpt.py, for scripts/finetune_gpt.py.

The training isn't the original's, whose example and model both shift the language model's labels.
"""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
