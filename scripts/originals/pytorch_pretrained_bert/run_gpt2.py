"""Does what pytorch-pretrained-bert's run_gpt2.py does, with scripts/generate_gpt2.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
