"""scripts/extract_features.py gives the values of pytorch-pretrained-bert's script of this name."""

import json

import numpy as np
import pytest
from script_runs import load_script, run

torch = pytest.importorskip('torch')
theirs = pytest.importorskip('pytorch_pretrained_bert')
safetensors = pytest.importorskip('safetensors.torch')
pytestmark = [pytest.mark.peers, pytest.mark.weights]

LAYERS, LENGTH = [-1, -2, 0, 5], 24
PAIRS = [
    ('Who was Jim Henson ?', 'Jim Henson was a puppeteer'),
    ('Unaffable tokenizers, naïvely put: "déjà vu" 東京.', None),
    ('', None),
    ('A long sentence ' * 9, 'and its long pair, ' * 5),
    ('a man plays a guitar ' * 6, None),
    ('x', 'y'),
]


@pytest.fixture(scope='module')
def expected(minilm_dir):
    """Tokens and values, (tokens, layers, units), of each pair, by their model and tokenizer.

    As Google's script, the second text has the token type 1: theirs leaves the token types out.
    """
    model = theirs.BertModel(theirs.BertConfig(str(minilm_dir / 'config.json'))).eval()
    state = safetensors.load_file(str(minilm_dir / 'model.safetensors'))
    missing, _ = model.load_state_dict(state, strict=False)
    assert not missing
    tokenizer = theirs.BertTokenizer(str(minilm_dir / 'vocab.txt'), do_lower_case=True)
    results = []
    for text, pair in PAIRS:
        first, second = tokenizer.tokenize(text.strip()), tokenizer.tokenize((pair or '').strip())
        while len(first) + len(second) > LENGTH - (3 if second else 2):
            (first if len(first) > len(second) else second).pop()
        tokens = ['[CLS]', *first, '[SEP]', *([*second, '[SEP]'] if second else [])]
        types = [0] * (len(first) + 2) + [1] * (len(tokens) - len(first) - 2)
        ids = tokenizer.convert_tokens_to_ids(tokens)
        padding = [0] * (LENGTH - len(ids))
        with torch.no_grad():
            states, _ = model(
                torch.tensor([ids + padding]),
                torch.tensor([types + padding]),
                torch.tensor([[1] * len(ids) + padding]),
            )
        values = np.stack([states[layer][0, : len(ids)].numpy() for layer in LAYERS], axis=1)
        results.append((tokens, values))
    return results


@pytest.fixture
def input_file(tmp_path):
    path = tmp_path / 'input.txt'
    lines = [text if pair is None else f'{text.strip()} ||| {pair}' for text, pair in PAIRS]
    path.write_text('\n'.join(lines) + '\n', 'utf-8')
    return path


def extract(minilm_dir, input_file, output_file):
    argv = ['--input_file', input_file, '--output_file', output_file, '--bert_model', minilm_dir]
    argv += ['--layers', ','.join(map(str, LAYERS)), '--max_seq_length', LENGTH]
    assert run(load_script('extract_features'), *argv, '--batch_size', 4) == 0


def test_json_lines(minilm_dir, expected, input_file, tmp_path):
    extract(minilm_dir, input_file, tmp_path / 'output.jsonl')
    rows = list(map(json.loads, (tmp_path / 'output.jsonl').read_text().splitlines()))
    assert [row['linex_index'] for row in rows] == list(range(len(PAIRS)))
    for row, (tokens, values) in zip(rows, expected):
        assert [feature['token'] for feature in row['features']] == tokens
        for feature, vectors in zip(row['features'], values):
            assert [layer['index'] for layer in feature['layers']] == LAYERS
            found = [layer['values'] for layer in feature['layers']]
            theirs = [[round(value.item(), 6) for value in vector] for vector in vectors]
            np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-5)
