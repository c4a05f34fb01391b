"""One step of generation as a graph of MXNet."""

import json
import os

import mxnet as mx
import numpy as np
import pytest
import tiny
import warm
from arrays import imported

import gpt
import gpt2
import transfo_xl
from export import ExportError, export_steps, steps
from export.export import main
from model_zoo.errors import InputError


def transformer_xl(**options):
    sizes = {'cutoffs': [10], 'tgt_len': 8, 'mem_len': 8, 'ext_len': 0, **options}
    config = tiny.transfo_xl_config(40, init_std=0.3, proj_init_std=0.3, **sizes)
    return transfo_xl.TransfoXLLMHeadModel(config)


BLOCKS = {
    'gpt': lambda: gpt.OpenAIGPTLMHeadModel(tiny.decoder_config(gpt.OpenAIGPTConfig, 40)),
    'gpt2': lambda: gpt2.GPT2LMHeadModel(tiny.decoder_config(gpt2.GPT2Config, 40)),
    'same length': lambda: transformer_xl(same_length=True),
    'any length': lambda: transformer_xl(same_length=False, pre_lnorm=True),
    'without memory': lambda: transformer_xl(same_length=False, mem_len=0),
    'clamped': lambda: transformer_xl(clamp_len=5),
}

#: what a user of the files writes; only MXNet is needed
PROGRAM = """
import json, sys
import mxnet as mx
prompts, shapes, new = json.loads(sys.argv[1])
names = [f'data{number}' for number in range(3 + len(shapes))]
net = mx.gluon.SymbolBlock.imports('step-symbol.json', names, 'step-0000.params')
longest = max(map(len, prompts))
begins = mx.nd.array([longest - len(prompt) for prompt in prompts])
rows = [[0] * (longest - len(prompt)) + prompt for prompt in prompts]
caches = [mx.nd.zeros(shape) for shape in shapes]
for place in range(longest + new - 1):
    tokens = mx.nd.array([row[place] for row in rows])
    scores, *caches = net(tokens, mx.nd.array([place]), begins, *caches)
    if place >= longest - 1:
        for row, token in zip(rows, scores.argmax(axis=1).astype('int32').asnumpy().tolist()):
            row.append(token)
ours = {'model_zoo', 'gpt', 'gpt2', 'transfo_xl', 'export', 'gluonnlp'}.intersection(sys.modules)
print(json.dumps([[row[longest:] for row in rows], sorted(ours)]))
"""


@pytest.fixture(params=sorted(BLOCKS))
def block(request):
    return tiny.initialized(BLOCKS[request.param](), 0.3, 3)


def shapes_of(block, rows, capacity):
    return [list(each.shape) for each in steps.step_of(block, capacity).caches(rows)]


def test_the_same_greedy_tokens(block, tmp_path):
    paths = export_steps(block, str(tmp_path), 'step', 20)
    assert sorted(map(os.path.basename, paths)) == ['step-0000.params', 'step-symbol.json']
    assert sorted(os.listdir(tmp_path)) == [
        'step-0000.params',
        'step-SHA256SUMS',
        'step-symbol.json',
    ]
    prompts = [[5, 17, 33, 3], [8], [1, 2]]
    wanted = [each[0].tokens for each in block.generate(prompts, 12)]
    done = warm.run(
        ['-c', PROGRAM, json.dumps([prompts, shapes_of(block, 3, 20), 12])],
        tmp_path,
        {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [wanted, []]


def test_places_out_of_bounds(tmp_path):
    block = tiny.initialized(BLOCKS['gpt2']())
    export_steps(block, str(tmp_path), 'step', 4)
    caches = [mx.nd.zeros(shape) for shape in shapes_of(block, 2, 4)]
    net = imported(tmp_path / 'step', 3 + len(caches))
    for place, begins in ((-1, [0, 0]), (99, [0, 77]), (float('nan'), [-5, float('nan')])):
        made = net(mx.nd.array([3, 50]), mx.nd.array([place]), mx.nd.array(begins), *caches)
        assert all(np.isfinite(each.asnumpy()).all() for each in made)


def test_pruned_heads(tmp_path):
    block = tiny.initialized(BLOCKS['gpt2']())
    block.prune_heads({1: [0]})
    export_steps(block, str(tmp_path), 'step', 6)
    assert [shape[1] for shape in shapes_of(block, 1, 6)] == [2, 2, 1, 1]


def test_what_cannot_be_exported(tmp_path, monkeypatch):
    block = tiny.initialized(BLOCKS['gpt2']())
    with pytest.raises(InputError):
        export_steps(block.transformer, str(tmp_path), 'step', 6)
    with pytest.raises(InputError):
        export_steps(block, str(tmp_path), 'step', 25)
    with pytest.raises(InputError):
        export_steps(block, str(tmp_path), 'a/b', 6)
    monkeypatch.setattr(steps, 'TOLERANCE', -1)
    with pytest.raises(ExportError):
        export_steps(block, str(tmp_path), 'step', 6)
    assert not os.listdir(tmp_path)


def test_command(tmp_path):
    block = tiny.initialized(BLOCKS['gpt2']())
    block.save_pretrained(str(tmp_path / 'model'))
    common = ['--model_name', str(tmp_path / 'model'), '--output_dir', str(tmp_path / 'out')]
    main(['--task', 'language_model', '--capacity', '12', '--seq_length', '8', *common])
    arguments = mx.sym.load(str(tmp_path / 'out' / 'language_model-symbol.json')).list_arguments()
    assert sum(name.startswith('data') for name in arguments) == 7
    with pytest.raises(InputError):
        main(['--task', 'model', '--capacity', '12', *common])
    with pytest.raises(InputError):
        main(['--task', 'language_model', '--format', 'onnx', '--capacity', '12', *common])
