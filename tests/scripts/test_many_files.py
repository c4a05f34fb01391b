"""Work over many files: the same results for any number of workers, here or on a Ray cluster."""

import json
import os

import numpy as np
import pytest
import tiny
from ray_alone import ROOT, run_alone
from script_runs import load_script, refusal, run

import bert_embedding.cli
from bert import BertForSequenceClassification

WORDS = ['the', 'cat', 'dog', 'sleep', '##s', 'in', 'paris', 'good', 'film', '.', '?', 'where', 'a']
LINES = ['the cat sleeps .', '', 'good film', 'where a dog ?', 'paris in the film'] * 8


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A model, a classifier, and the texts a.txt and b.txt."""
    folder = tmp_path_factory.mktemp('many')
    size = {'num_hidden_layers': 1, 'max_position_embeddings': 32}
    tiny.save_bert(folder / 'model', WORDS, **size)
    labels = ['bad', 'good']
    tiny.save_bert(folder / 'classifier', WORDS, BertForSequenceClassification, labels, **size)
    (folder / 'a.txt').write_text('\n'.join(LINES) + '\n')
    (folder / 'b.txt').write_text('\n'.join(LINES[3:7]))
    return folder


def embed(folder, output, *more):
    argv = ['--model', folder / 'model', '--files', f'{folder}/?.txt', '--output_dir', output]
    return run(bert_embedding.cli, *argv, '--part_mb', '0.0003', *more)


def contents(folder):
    paths = (path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in paths}


def test_vectors_do_not_depend_on_workers(folder, tmp_path):
    for workers in (1, 2):
        assert embed(folder, tmp_path / str(workers), '--num_workers', workers) == 0
    one, two = (contents(tmp_path / str(workers)) for workers in (1, 2))
    assert one == two
    assert set(one) == {'a.txt-00000-of-00002.npz', 'a.txt-00001-of-00002.npz', 'b.txt.npz'}
    argv = ['--model', folder / 'model', '--file', folder / 'a.txt', '--output', tmp_path / 'a.npz']
    assert run(bert_embedding.cli, *argv) == 0
    with np.load(tmp_path / 'a.npz') as whole:
        parts = [np.load(tmp_path / '1' / name) for name in sorted(one)[:2]]
        tokens, vectors = (
            np.concatenate([part[name] for part in parts]) for name in ('tokens', 'vectors')
        )
        assert tokens.tolist() == whole['tokens'].tolist()
        np.testing.assert_allclose(vectors, whole['vectors'], atol=1e-5)


def test_finished_files_are_left_out(folder, tmp_path, capsys):
    argv = '--pooling', 'mean', '--num_workers', '1'
    assert embed(folder, tmp_path, *argv) == 0
    before = contents(tmp_path)
    os.remove(tmp_path / 'b.txt.npz')
    times = {name: os.stat(tmp_path / name).st_mtime_ns for name in contents(tmp_path)}
    leftovers = [tmp_path / f'.{name}0123abcd.part' for name in ('b.txt.npz', 'c.txt.npz')]
    for path in leftovers:
        path.write_text('of a killed worker')
    assert embed(folder, tmp_path, *argv) == 0
    assert '2 of 3 files are there already' in capsys.readouterr().err
    leftovers[1].unlink()  # another job may be at it
    assert contents(tmp_path) == before and len(os.listdir(tmp_path / '.done')) == 3
    assert times == {name: os.stat(tmp_path / name).st_mtime_ns for name in times}


def test_labels(folder, tmp_path, capsys):
    script = load_script('predict')
    argv = [folder / 'classifier', '--files', folder / '?.txt', '--output_dir', tmp_path]
    assert run(script, *argv, '--num_workers', 2) == 0
    labelled = [json.loads(line) for line in (tmp_path / 'b.txt.jsonl').read_text().splitlines()]
    assert [each['text'] for each in labelled] == [line for line in LINES[3:7] if line]
    (tmp_path / 'b.txt').write_text('a')
    twice, output = f'{folder}/b.txt,{tmp_path}/b.txt', ['--output_dir', tmp_path]
    for words, message in (
        (['a text', *argv[1:]], 'leave out other texts'),
        (['a text', *output], 'go with --files'),
        (argv[1:3], '--files needs --output_dir'),
        (['--files', twice, *output], "two are called 'b.txt'"),
    ):
        assert message in refusal(capsys, script, folder / 'classifier', *words)


def test_another_model_at_the_same_place(folder, tmp_path, capsys):
    """What the old one made doesn't count."""
    model, script = tmp_path / 'model', load_script('zoo')
    argv = ['predict', model, '--files', folder / 'b.txt', '--num_workers', 1]
    argv += ['--output_dir', tmp_path / 'out']
    made = []
    for is_other in (False, False, True):
        if is_other or not made:
            labels = ['bad', 'good']
            tiny.save_bert(model, WORDS, BertForSequenceClassification, labels, seed=len(made))
        assert run(script, *argv) == 0
        made.append(contents(tmp_path / 'out'))
        assert ('1 of 1 files are there' in capsys.readouterr().err) == (len(made) == 2)
    assert made[0] == made[1] != made[2]


COMMANDS = """
import json, subprocess, sys
done = [subprocess.run([sys.executable, *words], stdout=2) for words in json.loads(sys.argv[1])]
print(json.dumps([each.returncode for each in done]))
"""


@pytest.mark.slow
def test_ray_writes_the_same_files(folder, fixtures, tmp_path):
    source, texts, parts = fixtures / 'pretraining', folder / 'long.txt', ['--part_mb', 0.01]
    texts.write_text((source / 'sample_text.txt').read_text() * 10)
    samples = f'create_pretraining_data --input_file {texts} --max_length 32 --num_outputs 3'
    jobs = {
        'samples': [*samples.split(), '--vocab', source / 'vocab.txt'],
        'labels': ['predict', folder / 'classifier', '--files', texts, *parts],
    }
    zoo, more = ROOT / 'scripts' / 'zoo.py', ['--ray', 'local', '--output_dir']
    commands = [[zoo, *job, *more, tmp_path / 'ray' / name] for name, job in jobs.items()]
    commands = [list(map(str, command)) for command in commands]
    assert run_alone('-c', COMMANDS, json.dumps(commands)) == [0, 0]
    for name, job in jobs.items():
        output = tmp_path / 'alone' / name
        assert run(load_script('zoo'), *job, '--output_dir', output, '--num_workers', 1) == 0
        one, ray = contents(output), contents(tmp_path / 'ray' / name)
        assert one == ray and one
