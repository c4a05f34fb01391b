"""Does what pytorch-pretrained-bert's extract_features.py does, by scripts/extract_features.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
