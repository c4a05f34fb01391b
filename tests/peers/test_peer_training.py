"""scripts/benchmark/peer_training.py: without dropout the peer's losses are ours."""

import json

import pytest
from contract import Killed, bert, lm, squad, swag, tagging
from script_runs import SCRIPTS, load_script, run
from toy_data import (
    write_questions,
    write_reviews,
    write_situations,
    write_tagged,
    write_texts,
)

pytest.importorskip('torch')
pytest.importorskip('transformers')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore::UserWarning')]

SAME = ['--epochs', '2', '--optimizer', 'openaiadam', '--lr', '1e-3', '--log_interval', '2']


def classifier(data, output):
    files = [word for name in ('train', 'dev') for word in (f'--{name}_file', data / f'{name}.tsv')]
    return ['--task_name', 'custom', '--text_columns', 'text', '--label_column', 'label', *files,
            *bert(data, 'max_length=40,dropout=0'), '--max_len', '24', '--batch_size', '16',
            '--output_dir', output]  # fmt: skip


def questions(data, output):
    words = squad(data, output, version=2)
    place = words.index('--hparams') + 2  # the last part of the size
    return [*words[:place], words[place] + ',dropout=0', *words[place + 1 :]]


TASKS = {
    'finetune_classifier': (write_reviews, classifier),
    'finetune_squad': (write_questions, questions),
    'finetune_tagging': (write_tagged, tagging),
    'finetune_swag': (write_situations, lambda data, output: swag(data, output, '--do_eval')),
    'train_lm gpt2': (write_texts, lambda data, output: lm(data, output, 'gpt2')),
    'train_lm transfo_xl': (write_texts, lambda data, output: lm(data, output, 'transfo_xl')),
}


def peer(script, *argv):
    return run(load_script('peer_training', SCRIPTS / 'benchmark'), script, *argv)


def training_of(folder):
    return json.loads((folder / 'results.json').read_text('utf-8'))['training']


def assert_same_training(ours, theirs):
    ours, theirs = training_of(ours), training_of(theirs)
    assert ours['log'][-1]['loss'] != pytest.approx(ours['log'][0]['loss'], rel=1e-2)
    for one, other in zip(ours['log'], theirs['log'], strict=True):
        assert one['loss'] == pytest.approx(other['loss'], rel=1e-3)
        assert one['lr'] == other['lr']
    for one, other in zip(ours['epochs'], theirs['epochs'], strict=True):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=1e-3)
        assert one['score'] == pytest.approx(other['score'], rel=0.05, abs=2e-2)


@pytest.mark.parametrize('name', TASKS)
def test_the_same_losses(name, tmp_path):
    script = name.split()[0]
    write, arguments = TASKS[name]
    data = tmp_path / 'data'
    data.mkdir()
    write(data)
    argv = arguments(data, tmp_path / 'ours')
    assert run(load_script(script), *argv, *SAME) == 0
    assert peer(script, *argv, *SAME, '--output_dir', tmp_path / 'theirs') == 0
    assert_same_training(tmp_path / 'ours', tmp_path / 'theirs')


@pytest.mark.parametrize('optimizer', ['bertadam', 'openaiadam'])
def test_a_killed_one_goes_on(optimizer, tmp_path):
    write_reviews(tmp_path)
    argv = [*classifier(tmp_path, tmp_path / 'whole'), *SAME, '--ckpt_interval', '5']
    argv += ['--optimizer', optimizer]
    assert peer('finetune_classifier', *argv) == 0
    argv += ['--output_dir', tmp_path / 'cut']
    undo = kill_torch(40)
    try:
        with pytest.raises(Killed):
            peer('finetune_classifier', *argv)
    finally:
        undo()
    assert peer('finetune_classifier', *argv, '--resume') == 0
    whole, cut = training_of(tmp_path / 'whole'), training_of(tmp_path / 'cut')
    for one, other in zip(whole['epochs'], cut['epochs'], strict=True):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=1e-6)
        assert one['score'] == other['score']


def kill_torch(number):
    """As `contract.kill`, of torch's backward passes."""
    import torch

    backward, calls = torch.Tensor.backward, []

    def counting(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            raise Killed
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = counting
    return lambda: setattr(torch.Tensor, 'backward', backward)


def test_what_a_peer_cannot_train(tmp_path, capsys):
    assert peer('predict') == 1
    assert "'predict' is no training script" in capsys.readouterr().err
    write_reviews(tmp_path)
    argv = classifier(tmp_path, tmp_path / 'out')
    assert peer('finetune_classifier', *argv, '--accumulate', '2') == 1
    assert 'without --as_bertadam and --accumulate' in capsys.readouterr().err
