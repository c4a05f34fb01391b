"""Does what Google's run_pretraining.py does, with scripts/run_pretraining.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
