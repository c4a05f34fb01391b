"""Write tests/fixtures/pretraining: what the originals make of Google's sample_text.txt.

    python tests/oracle/make_pretraining_data_fixtures.py GOOGLE GLUONNLP

GOOGLE is a checkout of google-research/bert, GLUONNLP one of dmlc/gluon-nlp, v0.10.0. There are
already sample_text.txt, which is Google's, in the public domain, and vocab.txt, learned from it by
``tokenizers.BertWordPieceTokenizer().train(vocab_size=400)``.

- google.json, google_words.json: histograms of what is drawn by Google's algorithm, without and
  with whole-word masks (see `statistics` in tests/pretraining_statistics.py).
- gluonnlp.npz, gluonnlp_even.npz: files of GluonNLP's script; in the second, all rows have the same
  number of masks, so that NumPy makes another kind of array of them.
"""

import functools
import json
import pathlib
import random
import sys
import types
from unittest import mock

import gluonnlp

from oracle_files import FIXTURES  # isort: skip
from pretraining_statistics import STUDY, google_samples, statistics

from model_zoo.app.originals import load_script
from model_zoo.tasks.pretraining.text import SampleOptions
from model_zoo.tokenization.vocab import load_vocab

FOLDER = FIXTURES / 'pretraining'
TEXT, VOCAB = str(FOLDER / 'sample_text.txt'), str(FOLDER / 'vocab.txt')


def load_google(folder):
    """Return Google's script, and its flags; nothing of TensorFlow is used without a file."""
    flags = types.SimpleNamespace()
    kinds = 'string', 'bool', 'integer', 'float'
    defines = {f'DEFINE_{kind}': lambda *args: None for kind in kinds}
    stand_in = types.ModuleType('tensorflow')
    stand_in.flags = types.SimpleNamespace(FLAGS=flags, **defines)
    stand_in.gfile = types.SimpleNamespace(GFile=functools.partial(open, encoding='utf-8'))
    with mock.patch.dict(sys.modules, tensorflow=stand_in):
        sys.modules.pop('tokenization', None)
        return load_script(pathlib.Path(folder, 'create_pretraining_data.py')), flags


def values_of(options, names):
    return [getattr(options, name) for name in names.split()]


def main(google_folder, gluonnlp_folder):
    vocab, (original, flags) = load_vocab(VOCAB), load_google(google_folder)
    for name, whole_words in (('google', False), ('google_words', True)):
        options = SampleOptions(whole_word_mask=whole_words, **STUDY)
        flags.do_whole_word_mask = whole_words
        tokenizer = original.tokenization.FullTokenizer(VOCAB, do_lower_case=True)
        names = 'max_seq_length dupe_factor short_seq_prob masked_lm_prob max_predictions_per_seq'
        values = values_of(options, names)
        instances = original.create_training_instances([TEXT], tokenizer, *values, random.Random(1))
        found = statistics(google_samples(instances, vocab), vocab, options)
        (FOLDER / f'{name}.json').write_text(json.dumps(found) + '\n')
    path = pathlib.Path(gluonnlp_folder, 'scripts', 'bert', 'data', 'create_pretraining_data.py')
    original = load_script(path)
    for name, masks in (('gluonnlp', 10), ('gluonnlp_even', 1)):
        options = SampleOptions(64, masks, dupe_factor=1)
        random.seed(1)
        tokenizer = gluonnlp.data.BERTTokenizer(vocab, lower=True)
        names = 'max_seq_length short_seq_prob masked_lm_prob max_predictions_per_seq'
        values = values_of(options, f'{names} whole_word_mask')
        rest = (vocab, options.dupe_factor, 1, None, str(FOLDER / f'{name}.npz'))
        original.create_training_instances(([TEXT], tokenizer, *values, *rest))


if __name__ == '__main__':
    main(*sys.argv[1:])
