"""scripts/create_pretraining_data.py end to end."""

import shlex

import gluonnlp as nlp
import numpy as np
import pytest
import script_runs
from script_runs import SCRIPTS
from tiny import learn_pieces

from model_zoo.tasks.pretraining.files import read_shard
from model_zoo.tokenization.vocab import load_vocab

SCRIPT = SCRIPTS / 'create_pretraining_data.py'
# GluonNLP's README; the vocabulary is downloaded there
LINE = (
    '--input_file sample_text.txt --output_dir out --vocab vocab.txt --max_length 128 '
    '--max_predictions_per_seq 20 --dupe_factor 5 --masked_lm_prob 0.15 --short_seq_prob 0.1 '
    '--verbose'
)


@pytest.fixture
def folder(fixtures, tmp_path, here):
    """A working folder with the text and the vocabulary."""
    for name in ('sample_text.txt', 'vocab.txt'):
        (tmp_path / name).write_bytes((fixtures / 'pretraining' / name).read_bytes())
    return tmp_path


@pytest.fixture
def run(script, folder):
    return lambda line: script_runs.run(script, *shlex.split(line))


def test_the_originals_line(run, folder, capsys):
    assert run(LINE) == 0
    vocab = load_vocab('vocab.txt')
    samples = read_shard('out/part-000.npz', vocab, 128)
    assert samples.count > 60 and samples.input_ids.shape[1] == 128
    assert samples.masked_lm_ids.shape[1] == 20
    log = capsys.readouterr().err
    assert f'{samples.count} samples of' in log and 'masked_lm_labels: ' in log
    assert 'WARNING' not in log
    before = (folder / 'out' / 'part-000.npz').read_bytes()
    assert run(LINE + ' --random_seed 1') == 0
    assert (folder / 'out' / 'part-000.npz').read_bytes() != before


def test_several_files_in_and_out(run, folder):
    text = (folder / 'sample_text.txt').read_text(encoding='utf-8')
    for number in range(3):
        (folder / f'text{number}.txt').write_text(text, encoding='utf-8')
    line = '--output_dir out --vocab vocab.txt --max_length 64 --whole_word_mask'
    assert run(f"{line} --input_file 'text*.txt,sample_text.txt' --num_outputs 3") == 0
    names = sorted(path.name for path in (folder / 'out').glob('[!.]*'))
    assert names == [f'part-00{number}.npz' for number in range(3)]
    line += ' --input_file sample_text.txt --part_mb 0.001 --output_dir many --num_workers 1'
    assert run(line) == 0
    assert len(list((folder / 'many').glob('[!.]*'))) == 2


def test_sentencepiece(run, folder, fixtures):
    lines = (folder / 'sample_text.txt').read_text('utf-8').splitlines()
    special = {'pad_id': 3, 'control_symbols': ['[CLS]', '[SEP]', '[MASK]']}
    learn_pieces('spm.model', lines, 300, **special)
    line = '--input_file sample_text.txt --sentencepiece spm.model --max_length 64'
    line += ' --sp_nbest -1 --sp_alpha 0.1'
    assert run(f'{line} --output_dir out --cased') == 0
    vocab = nlp.vocab.BERTVocab.from_sentencepiece('spm.model')
    samples = read_shard('out/part-000.npz', vocab)
    assert (samples.input_ids == vocab['[MASK]']).any()
    lower = [n for n, token in enumerate(vocab.idx_to_token) if token.lower() != token]
    text = samples.input_ids[~np.isin(samples.input_ids, vocab[['[CLS]', '[SEP]', '[MASK]']])]
    assert np.isin(text, lower).any()
    assert run(f'{line} --output_dir again --cased') == 0
    one, other = (folder / name / 'part-000.npz' for name in ('out', 'again'))
    assert one.read_bytes() == other.read_bytes()
