"""Does what Google's run_classifier.py does, with scripts/finetune_classifier.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
