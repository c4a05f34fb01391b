"""Google's and GluonNLP's scripts that make samples for pre-training, from their checkouts."""

import functools
import pathlib
import random
import sys
import types
from unittest import mock

from model_zoo.app.originals import load_script


def google_original(folder):
    """Google's algorithm, from a checkout of google-research/bert."""
    flags = types.SimpleNamespace(do_whole_word_mask=False)
    type_names = 'string', 'bool', 'integer', 'float'
    defines = {f'DEFINE_{name}': lambda *args: None for name in type_names}
    # what the script takes from TensorFlow when it writes no file of its
    stand_in = types.ModuleType('tensorflow')
    stand_in.flags = types.SimpleNamespace(FLAGS=flags, **defines)
    stand_in.gfile = types.SimpleNamespace(GFile=functools.partial(open, encoding='utf-8'))
    with mock.patch.dict(sys.modules, tensorflow=stand_in):
        sys.modules.pop('tokenization', None)
        original = load_script(pathlib.Path(folder, 'create_pretraining_data.py'))

    def run(files, vocab_file, options, seed=12345):
        flags.do_whole_word_mask = options.whole_word_mask
        tokenizer = original.tokenization.FullTokenizer(vocab_file, do_lower_case=True)
        names = 'max_seq_length dupe_factor short_seq_prob masked_lm_prob max_predictions_per_seq'
        values = [getattr(options, name) for name in names.split()]
        return original.create_training_instances(files, tokenizer, *values, random.Random(seed))

    return run


def gluonnlp_original(folder):
    """GluonNLP's algorithm, from a checkout of gluon-nlp v0.10.0."""
    import gluonnlp

    path = pathlib.Path(folder, 'scripts', 'bert', 'data', 'create_pretraining_data.py')
    original = load_script(path)

    def run(files, vocab, options, seed=12345, path=None):
        random.seed(seed)
        tokenizer = gluonnlp.data.BERTTokenizer(vocab, lower=True)
        names = 'max_seq_length short_seq_prob masked_lm_prob max_predictions_per_seq'
        values = [getattr(options, name) for name in [*names.split(), 'whole_word_mask']]
        rest = (vocab, options.dupe_factor, 1, None, path)
        return original.create_training_instances((files, tokenizer, *values, *rest))

    return run
