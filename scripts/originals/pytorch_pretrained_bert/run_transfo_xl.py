"""Does what pytorch-pretrained-bert's run_transfo_xl.py does, with scripts/eval_transfo_xl.py."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
