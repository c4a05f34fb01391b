"""Does what pytorch-pretrained-bert's bertology.py does, with scripts/bertology.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
