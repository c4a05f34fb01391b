"""Does what pytorch-pretrained-bert's run_swag.py does, with scripts/finetune_swag.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
