"""Write tests/fixtures/pretraining: what the originals make of Google's sample_text.txt.

    python tests/oracle/make_pretraining_data_fixtures.py GOOGLE GLUONNLP

GOOGLE is a checkout of google-research/bert, GLUONNLP one of dmlc/gluon-nlp, v0.10.0.

- sample_text.txt: Google's, in the public domain; vocab.txt: learned from it.
- google.json, google_words.json: histograms of what is drawn by Google's algorithm, without and
  with whole-word masks (see `statistics` in tests/pretraining_statistics.py).
- gluonnlp.npz, gluonnlp_even.npz: files of GluonNLP's script; in the second, all rows have the same
  number of masks, so that NumPy makes another kind of array of them.
"""

import json
import pathlib
import shutil
import sys

from tokenizers import BertWordPieceTokenizer

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'tests')]

from pretraining_originals import gluonnlp_original, google_original  # noqa: E402
from pretraining_statistics import STUDY, google_samples, statistics  # noqa: E402

from model_zoo.tasks.pretraining.text import SampleOptions  # noqa: E402
from model_zoo.tokenization.vocab import load_vocab  # noqa: E402

FOLDER = ROOT / 'tests' / 'fixtures' / 'pretraining'


def main(google_folder, gluonnlp_folder):
    FOLDER.mkdir(exist_ok=True)
    text, vocab_file = str(FOLDER / 'sample_text.txt'), str(FOLDER / 'vocab.txt')
    shutil.copy(pathlib.Path(google_folder) / 'sample_text.txt', text)
    learner = BertWordPieceTokenizer()
    learner.train(text, vocab_size=400)
    learner.save_model(str(FOLDER))
    vocab = load_vocab(vocab_file)
    google = google_original(google_folder)
    for name, whole_words in (('google', False), ('google_words', True)):
        options = SampleOptions(whole_word_mask=whole_words, **STUDY)
        samples = google_samples(google([text], vocab_file, options, seed=1), vocab)
        found = statistics(samples, vocab, options)
        (FOLDER / f'{name}.json').write_text(json.dumps(found) + '\n')
    gluonnlp = gluonnlp_original(gluonnlp_folder)
    for name, masks in (('gluonnlp', 10), ('gluonnlp_even', 1)):
        options = SampleOptions(64, masks, dupe_factor=1)
        gluonnlp([text], vocab, options, seed=1, path=str(FOLDER / f'{name}.npz'))


if __name__ == '__main__':
    main(*sys.argv[1:])
