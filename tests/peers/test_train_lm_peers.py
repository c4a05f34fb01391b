"""scripts/train_lm.py against the same training in its originals, step for step."""

import random

import pytest
from script_runs import SCRIPTS, load_script, read_json, run

pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore::UserWarning')]


@pytest.mark.parametrize(
    ('family', 'options'),
    [
        ('gpt2', ['--hparams', 'num_layers=2,units=32,num_heads=2,max_length=16,dropout=0']),
        (
            'transfo_xl',
            ['--hparams', 'num_layers=2,units=32,embed_size=32,hidden_size=64,num_heads=2',
             'head_size=16,div_val=2,dropout=0', '--tgt_len', '8', '--mem_len', '8',
             '--cutoffs', '4', '12'],
        ),
    ],
)  # fmt: skip
def test_the_same_losses(family, options, tmp_path, monkeypatch):
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    rng = random.Random(2)
    words = [f'{letter}{digit}' for letter in 'abcd' for digit in range(6)]
    weights = [1 / (place + 1) for place in range(len(words))]
    for name, lines in (('train', 60), ('eval', 20)):
        text = [' '.join(rng.choices(words, weights, k=rng.randint(3, 9))) for _ in range(lines)]
        (tmp_path / f'{name}.txt').write_text('\n'.join(text) + '\n')
    argv = ['--family', family, '--from_scratch', '--train_file', tmp_path / 'train.txt',
            '--eval_file', tmp_path / 'eval.txt', '--output_dir', tmp_path / 'out', *options,
            '--batch_size', '4', '--epochs', '2', '--lr', '2e-3', '--warmup_ratio', '0.2',
            '--max_grad_norm', '0.5']  # fmt: skip
    if family == 'gpt2':
        argv += ['--learn_vocab', '280']
    assert run(load_script('train_lm'), *argv) == 0
    peer = load_script('peer_training', SCRIPTS / 'benchmark')
    assert run(peer, 'train_lm', *argv, '--output_dir', tmp_path / 'original') == 0
    ours, theirs = (
        read_json(tmp_path / name)['training']['epochs'] for name in ('out', 'original')
    )
    assert ours[-1]['train_loss'] < ours[0]['train_loss']
    for one, other in zip(ours, theirs):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=1e-4)
        for metric in ('loss', 'perplexity', 'word_perplexity'):
            found, wanted = (each['report']['dev'][metric] for each in (one, other))
            assert found == pytest.approx(wanted, rel=1e-3), metric
