"""Does what pytorch-pretrained-bert's run_openai_gpt.py does, with scripts/finetune_gpt.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
