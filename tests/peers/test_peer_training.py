"""scripts/benchmark/peer_training.py: without dropout the peer's losses are ours."""

import json

import pytest
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


SIZES = {
    'gpt2': 'num_layers=1,units=32,num_heads=2,max_length=16,dropout=0',
    'transfo_xl': 'num_layers=1,units=32,embed_size=32,hidden_size=64,num_heads=2,head_size=16,'
    'div_val=2,dropout=0',
}


class Killed(BaseException):
    """What nothing of the project catches, as it can't a process's end."""


def bert(data):
    size = 'num_layers=1,units=32,hidden_size=64,num_heads=2,max_length=48,dropout=0'
    return ['--from_scratch', '--vocab_file', data / 'vocab.txt', '--hparams', size,
            '--batch_size', '16']  # fmt: skip


def classifier(data):
    files = [word for name in ('train', 'dev') for word in (f'--{name}_file', data / f'{name}.tsv')]
    return ['--task_name', 'custom', '--text_columns', 'text', '--label_column', 'label', *files,
            *bert(data), '--max_len', '24']  # fmt: skip


def questions(data):
    files = ['--train_file', data / 'train-2.json', '--predict_file', data / 'dev-2.json']
    return [*files, '--version_2', *bert(data), '--max_seq_length', '40', '--doc_stride', '12',
            '--max_query_length', '10']  # fmt: skip


def tagging(data):
    return ['--data_dir', data, *bert(data), '--max_seq_length', '24']


def swag(data):
    return ['--do_train', '--do_eval', '--data_dir', data, *bert(data), '--max_seq_length', '32']


def lm(family):
    more = {'gpt2': ['--learn_vocab', '290'], 'transfo_xl': ['--tgt_len', '8', '--mem_len', '8']}

    def arguments(data):
        texts = ['--train_file', data / 'train.txt', '--eval_file', data / 'eval.txt']
        return ['--family', family, '--from_scratch', '--hparams', SIZES[family], *texts,
                '--batch_size', '4', *more[family]]  # fmt: skip

    return arguments


TASKS = {
    'finetune_classifier': (write_reviews, classifier),
    'finetune_squad': (write_questions, questions),
    'finetune_tagging': (write_tagged, tagging),
    'finetune_swag': (write_situations, swag),
    'train_lm gpt2': (write_texts, lm('gpt2')),
    'train_lm transfo_xl': (write_texts, lm('transfo_xl')),
}


def peer(script, *argv):
    return run(load_script('peer_training', SCRIPTS / 'benchmark'), script, *argv)


def training_of(folder):
    return json.loads((folder / 'results.json').read_text('utf-8'))['training']


def assert_same_training(ours, theirs, tolerance):
    ours, theirs = training_of(ours), training_of(theirs)
    assert ours['log'][-1]['loss'] != pytest.approx(ours['log'][0]['loss'], rel=1e-4)
    for one, other in zip(ours['log'], theirs['log'], strict=True):
        assert one['loss'] == pytest.approx(other['loss'], rel=tolerance)
        assert one['lr'] == other['lr']
    for one, other in zip(ours['epochs'], theirs['epochs'], strict=True):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=tolerance)
        if tolerance < 0.01:
            assert one['score'] == pytest.approx(other['score'], rel=0.05, abs=2e-2)


@pytest.mark.parametrize('name', TASKS)
def test_the_same_losses(name, tmp_path):
    script = name.split()[0]
    write, arguments = TASKS[name]
    data = tmp_path / 'data'
    data.mkdir()
    write(data)
    argv = arguments(data)
    assert run(load_script(script), *argv, *SAME, '--output_dir', tmp_path / 'ours') == 0
    assert peer(script, *argv, *SAME, '--output_dir', tmp_path / 'theirs') == 0
    # transformers gives padding a probability to be an answer's end, and we don't
    tolerance = 0.15 if script == 'finetune_squad' else 1e-3
    assert_same_training(tmp_path / 'ours', tmp_path / 'theirs', tolerance)


@pytest.mark.parametrize('optimizer', ['bertadam', 'openaiadam'])
def test_a_killed_one_goes_on(optimizer, tmp_path):
    write_reviews(tmp_path)
    argv = [*classifier(tmp_path), *SAME, '--ckpt_interval', '5', '--optimizer', optimizer]
    assert peer('finetune_classifier', *argv, '--output_dir', tmp_path / 'whole') == 0
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
    """Have one of torch's backward passes end the training; ends with a call."""
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
    assert "'predict' is not a training script" in capsys.readouterr().err
    write_reviews(tmp_path)
    argv = [*classifier(tmp_path), '--output_dir', tmp_path / 'out']
    assert peer('finetune_classifier', *argv, '--accumulate', '2') == 1
    assert 'without --as_bertadam and --accumulate' in capsys.readouterr().err
