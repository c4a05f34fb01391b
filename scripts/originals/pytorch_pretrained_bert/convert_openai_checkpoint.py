"""Does what pytorch_pretrained_bert's convert_openai_checkpoint does, with its arguments."""

from model_zoo.app.originals import original_main

main = original_main(__file__, __name__)
