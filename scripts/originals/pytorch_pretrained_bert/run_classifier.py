"""Does what pytorch-pretrained-bert's run_classifier.py does, by scripts/finetune_classifier.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
