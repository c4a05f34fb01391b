"""Does what pregenerate_training_data.py of pytorch-pretrained-bert does, with our script."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
