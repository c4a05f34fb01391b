"""Does what Google's create_pretraining_data.py does, with scripts/create_pretraining_data.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
