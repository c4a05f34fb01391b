"""Exported graphs don't read or write beyond memory, whatever a caller gives them."""

import json
import os

import mxnet as mx
import numpy as np
import tiny
from arrays import assert_same, imported
from script_runs import MXNET, run_python

import bert
import gpt2
import transfo_xl
from export import export_block

BERT = tiny.bert_config(40)
DECODER = tiny.decoder_config(gpt2.GPT2Config, 40)
WORDS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], 'float32')
LENGTHS = np.array([5, 3], 'float32')
ROWS = [WORDS, 0 * WORDS, LENGTHS]
MEMS = [np.ones((8, 2, 16), 'float32')] * 2 + [np.array([8, 3], 'float32')]


def make_bert(head):
    return lambda: getattr(bert, f'BertFor{head}')(BERT)


def make_xl(ext_len):
    config = tiny.transfo_xl_config(40, ext_len=ext_len, tgt_len=8, mem_len=8)
    return transfo_xl.TransfoXLLMHeadModel(config)


#: block, the graph's inputs, and the places of ids, lengths, and counts of a memory among them
CASES = {
    'bert': (make_bert('SequenceClassification'), ROWS, [0, 1], {2: 5}),
    'choices': (make_bert('MultipleChoice'), [row[:, None] for row in ROWS], [0, 1], {2: 5}),
    'gpt2': (lambda: gpt2.GPT2LMHeadModel(DECODER), [WORDS, LENGTHS], [0], {1: 5}),
    'transfo_xl': (lambda: make_xl(0), [WORDS, *MEMS, LENGTHS], [0], {3: 8, 4: 5}),
    'extended': (lambda: make_xl(3), [WORDS, *MEMS, LENGTHS], [0], {3: 8, 4: 5}),
}
BAD = [-1, -1e6, float('nan'), 1e9, float('inf'), -float('inf')]

#: a crash of MXNet would end the tests
PROGRAM = """
import json, sys
import mxnet as mx
import numpy as np
cases, bad = json.loads(sys.argv[1])

def run(net, arrays, place, value):
    given = [array.copy() for array in arrays]
    given[place].flat[0] = value
    made = net(*map(mx.nd.array, given))
    made = made if isinstance(made, (list, tuple)) else [made]
    return [each.asnumpy() for each in made]

for name, count, ids, lengths in cases:
    print(name)
    arrays = [np.load(f'{name}{i}.npy') for i in range(count)]
    inputs = [f'data{i}' for i in range(count)]
    net = mx.gluon.SymbolBlock.imports(f'{name}-symbol.json', inputs, f'{name}-0000.params')
    for value in bad:
        for place in ids:
            run(net, arrays, place, value)
        for place, most in lengths.items():
            inside = 0 if np.isnan(value) else min(max(value, 0), most)
            found = (run(net, arrays, int(place), each) for each in (value, inside))
            for one, two in zip(*found):
                np.testing.assert_array_equal(one, two)
print('done', sorted({'bert', 'model_zoo', 'export', 'gluonnlp'}.intersection(sys.modules)))
"""


def test_what_is_out_of_bounds_is_brought_into_them(tmp_path):
    for name, (make, arrays, _, _) in CASES.items():
        export_block(tiny.initialized(make(), 0.1), str(tmp_path), name)
        for number, array in enumerate(arrays):
            np.save(tmp_path / f'{name}{number}.npy', array)
    cases = [(name, len(arrays), *rest) for name, (_, arrays, *rest) in CASES.items()]
    plain = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    words = ['-c', MXNET + PROGRAM, json.dumps([cases, BAD])]
    done = run_python(*words, cwd=tmp_path, env=plain)
    assert done.stdout.split('\n')[-2:] == ['done []', ''], done.stdout + done.stderr


def test_an_attention_mask_of_other_numbers(tmp_path):
    block = tiny.initialized(bert.BertForSequenceClassification(BERT), 0.1)
    mask = mx.nd.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]])
    words, types = mx.nd.array(WORDS), mx.nd.zeros((2, 5))
    export_block(block, str(tmp_path), 'net', [words, types, mask])
    other = mask * 7 - 5 * (1 - mask)
    other[0, 2] = float('nan')
    assert_same(imported(tmp_path / 'net')(words, types, other), block(words, types, mask), 1e-6)
