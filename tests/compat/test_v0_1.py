"""Whatever version 0.1 took, computed and wrote, this version takes, computes and reads."""

import importlib
import json
import pathlib
import re
import shutil

import mxnet as mx
import numpy as np
import pytest
import tokenizers
from command_flags import flags_of, main_of, parser_of
from recorded_files import TOLERANCE, assert_keys, assert_same_file

import model_zoo
from model_zoo import cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED_WITH_TOKENIZERS = '0.22.2'
RECORDED = ROOT / 'tests' / 'fixtures' / 'v0_1'
COMMANDS, RUNS, KEYS, BLOCKS = (
    json.loads((RECORDED / name).read_text(encoding='utf-8'))
    for name in ('commands.json', 'runs.json', 'results_keys.json', 'blocks/blocks.json')
)


# The bias of a multiple choice is added to all choices alike; 4 updates at a rate of 1e-4.
OF_CHANCE = {'finetune_swag': {'classifier.bias': 4e-4}}


@pytest.mark.parametrize('name', COMMANDS)
def test_flags(name):
    """Each flag is there with the same destination, default and values; its help may differ."""
    flags = flags_of(parser_of(main_of(name, ROOT)))
    ours = {flag: record for record in flags for flag in record['flags'] or [record['dest']]}
    for wanted in COMMANDS[name]['flags']:
        for flag in wanted['flags'] or [wanted['dest']]:
            assert flag in ours, f'{name} {flag} is gone'
            found = ours[flag]
            for part in ('dest', 'default', 'const', 'nargs', 'values'):
                known = [wanted.get(part)]
                if part == 'nargs' and not wanted['flags']:
                    known.append('?')  # what had to be given may be left out now
                assert found.get(part) in known, (flag, part)
            assert wanted['required'] or not found['required'], f'{flag} was not required'
            if 'choices' in found:
                assert set(wanted['choices']) <= set(found['choices']), flag


def test_commands_are_recorded():
    assert len(COMMANDS) == 30
    assert sum(len(command['flags']) for command in COMMANDS.values()) > 600


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, in which the recorded command lines find their files."""
    for name in ('data', 'runs'):
        (tmp_path / name).symlink_to(RECORDED / name)
    (tmp_path / 'output').mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize('name', RUNS)
def test_command_goes_on_and_ends_as_recorded(folder, monkeypatch, name):
    """A training, or another long run, goes on with what 0.1 has left; all compute the same."""
    if name == 'finetune_tagging':
        pytest.importorskip('seqeval')
    record, start, end = RUNS[name], RECORDED / 'runs' / name / 'start', folder / 'output'
    assert ('--resume' in record['argv']) == start.exists()
    if start.exists():
        shutil.rmtree(end)
        shutil.copytree(start, end)
    updates, update = [], mx.gluon.Trainer._update
    monkeypatch.setattr(
        mx.gluon.Trainer, '_update', lambda *args: updates.append(1) or update(*args)
    )
    assert cli.run(main_of(record['command'], ROOT), record['argv']) == 0
    assert len(updates) == record['updates']  # it has not begun anew
    written = {path.relative_to(end).as_posix() for path in end.rglob('*') if path.is_file()}
    wanted = set(record['files'])
    if tokenizers.__version__ != RECORDED_WITH_TOKENIZERS:  # the caches' names depend on it
        written, wanted = ({re.sub('squad-[0-9a-f]+', 'squad', f) for f in names}
                           for names in (written, wanted))  # fmt: skip
    assert not wanted - written
    for file, keys in KEYS[name].items():
        assert_keys(json.loads((end / file).read_text(encoding='utf-8')), keys, file)
    recorded = RECORDED / 'runs' / name / 'end'
    for path in recorded.rglob('*'):
        if path.is_file() and name != 'export':  # whose arrays have names of the process
            ours = end / path.relative_to(recorded)
            assert_same_file(ours, path, of_chance=OF_CHANCE.get(name))


def test_exported_again_computes_the_same(folder):
    record, recorded = RUNS['export'], RECORDED / 'runs' / 'export' / 'end'
    assert cli.run(main_of(record['command'], ROOT), record['argv']) == 0
    words = mx.nd.array([[2, 7, 9, 3, 0], [2, 11, 5, 6, 3]])
    inputs = words, mx.nd.zeros_like(words), mx.nd.array([4, 5])
    ours, theirs = (
        mx.gluon.SymbolBlock.imports(
            str(place / 'classification-symbol.json'),
            ['data0', 'data1', 'data2'],
            str(place / 'classification-0000.params'),
        )(*inputs).asnumpy()
        for place in (folder / 'output', recorded)
    )
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)


def test_extraction_goes_on_behind_what_is_finished(folder):
    record, start = RUNS['extract_features'], RECORDED / 'runs' / 'extract_features' / 'start'
    shutil.copytree(start, folder / 'output', dirs_exist_ok=True)
    assert cli.run(main_of(record['command'], ROOT), record['argv']) == 0
    results = json.loads((folder / 'output' / 'features.jsonl.results.json').read_text())
    assert results['resumed_after'] == 2


def load(path):
    """The class that 'module:name' stands for."""
    module, name = path.split(':')
    return getattr(importlib.import_module(module), name)


def flatten(outputs):
    if isinstance(outputs, (list, tuple)):
        return [array for each in outputs for array in flatten(each)]
    return [] if outputs is None else [outputs.asnumpy()]


def assert_computes(call, path):
    """That ``call(**inputs)`` returns the recorded outputs."""
    with np.load(path) as file:
        recorded = dict(file)
    inputs = {
        name[len('in_') :]: mx.nd.array(array, dtype=array.dtype)
        for name, array in recorded.items()
        if name.startswith('in_')
    }
    outputs = [array for name, array in recorded.items() if name.startswith('out_')]
    found = flatten(call(**inputs))
    assert len(found) == len(outputs)
    for ours, wanted in zip(found, outputs):
        np.testing.assert_allclose(ours, wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize('path', BLOCKS['folders'])
def test_folder_opens_and_computes(folder, path):
    block = load(path).from_pretrained(BLOCKS['folders'][path])
    assert_computes(block, RECORDED / 'blocks' / f'{path.replace(":", ".")}.npz')


@pytest.mark.parametrize('path', BLOCKS['converted'])
def test_folder_in_huggingfaces_format(folder, path):
    block = load(path).from_pretrained(BLOCKS['converted'][path])
    assert_computes(block, RECORDED / 'blocks' / f'{path.replace(":", ".")}.npz')


def test_parameters_load_into_the_zoos_block(folder):
    vocab = load('bert:BertTokenizer')('data/vocab.txt').vocab
    block, found = model_zoo.get_model(
        'bert_12_768_12', vocab=vocab, pretrained=False, hparam_allow_override=True, **BLOCKS['zoo']
    )
    assert found is vocab
    block.load_parameters(str(RECORDED / 'blocks' / 'zoo' / 'bert.params'))
    # GluonNLP's order, by place
    order = ('words', 'token_types', 'valid_length', 'masked_positions')
    assert_computes(
        lambda **inputs: block(*(inputs[name] for name in order)),
        RECORDED / 'blocks' / 'zoo' / 'bert.npz',
    )


def test_export_of_a_decoder_loads_in_mxnet():
    prefix = str(RECORDED / 'blocks' / 'exports' / 'gpt2')
    net = mx.gluon.SymbolBlock.imports(
        f'{prefix}-symbol.json', ['data0', 'data1'], f'{prefix}-0000.params'
    )
    assert_computes(lambda **inputs: net(*inputs.values()), pathlib.Path(f'{prefix}.npz'))


@pytest.mark.parametrize('path', BLOCKS['tokenizers'])
def test_tokenizer(folder, path):
    tokenizer = load(path).from_pretrained(BLOCKS['tokenizers'][path])
    for record in BLOCKS['encoded'][path]:
        tokens = tokenizer.tokenize(record['text'])
        assert tokens == record['tokens']
        ids = list(tokenizer.convert_tokens_to_ids(tokens))
        assert ids == record['ids']
        assert tokenizer.convert_ids_to_tokens(ids) == record['tokens_of_ids']
        assert_encoded(tokenizer.encode(record['text']), record['encoded'])
        if 'decoded' in record:
            assert tokenizer.decode(ids) == record['decoded']


def assert_encoded(ours, wanted):
    """That an encoding has the recorded fields, or where those of 0.1 were ids alone, the ids."""
    if isinstance(wanted, list):
        assert np.asarray(getattr(ours, 'input_ids', ours)).tolist() == wanted
        return
    for name, value in wanted.items():
        found = getattr(ours, name)
        found = [list(each) if isinstance(each, tuple) else each for each in found]
        assert found == value, name


@pytest.mark.parametrize('name', BLOCKS['generated'])
def test_generation(folder, name):
    path, way = name.split()
    block = load(path).from_pretrained(BLOCKS['folders'][path])
    beams = {'num_beams': 3} if way == 'beam' else {}
    found = load('model_zoo.generation:generate')(block, [[3, 4, 5], [6]], 5, **beams)
    for ours, wanted in zip(found, BLOCKS['generated'][name]):
        assert [list(each.tokens) for each in ours] == [tokens for tokens, _ in wanted]
        for each, (_, log_prob) in zip(ours, wanted):
            assert each.log_prob == pytest.approx(log_prob, abs=1e-5)


def test_shards_are_read(folder):
    """The pretraining runs train on them; here by the public function."""
    vocab = load('bert:BertTokenizer')('data/vocab.txt').vocab
    read_shard = load('model_zoo.data.pretraining:read_shard')
    for path in sorted((RECORDED / 'runs' / 'create_pretraining_data' / 'end').glob('*.npz')):
        samples = read_shard(str(path), vocab, 24)
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                np.testing.assert_array_equal(getattr(samples, name), file[name], err_msg=name)
