"""Does what pytorch-pretrained-bert's simple_lm_finetuning.py does, with scripts/finetune_lm.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
