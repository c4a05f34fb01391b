"""The code blocks of pytorch-pretrained-bert's description run here, and give the same.

Its wheel carries the description. Each block of Python in it runs twice on the same small weights:
as it is, by the original; and here, with the lines that are torch's own translated by the table in
docs/migrating/pytorch_pretrained_bert.rst. All arrays, words and numbers that a block leaves behind
must be the same. So what it asserts of words that the released weights predict, which small
weights don't, is left out.
"""

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import string

import numpy as np
import pytest
import tiny
from huggingface_hub import constants

import bert
import gpt
import gpt2
import transfo_xl
from model_zoo.pretrained import catalogue, find, get_entry, resolve
from model_zoo.util.reading import sha256_of

torch = pytest.importorskip('torch')
original = pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore')]

PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'migrating' / 'pytorch_pretrained_bert.rst'
DESCRIPTION = importlib.metadata.distribution('pytorch-pretrained-bert').read_text(
    'DESCRIPTION.rst'
)
BLOCKS = re.findall(r'^```(\w*)\n(.*?)^```', DESCRIPTION, re.DOTALL | re.MULTILINE)
#: numbers of the blocks of Python; 21, which is marked so, is a drawing of a table's rows
PYTHON = [n for n, (language, _) in enumerate(BLOCKS) if language == 'python' and n != 21]
#: block -> the one that must run before it
AFTER = {6: 5, 7: 5, 9: 8, 10: 8, 12: 11, 13: 11, 15: 14, 16: 14}
NAMES = ('bert-base-uncased', 'openai-gpt', 'transfo-xl-wt103', 'gpt2')


def table():
    """The rows (torch's, ours) of the page's table of lines."""
    text = PAGE.read_text(encoding='utf-8').split('.. _torch-lines:')[1]
    return re.findall(r'   \* - ``(.+?)``\n     - ``(.+?)``\n', text.split('\n\n\n')[0] + '\n')


def translated(code):
    """`code` with torch's lines translated; single capitals in a row stand for anything."""
    for theirs, ours in table():
        pattern = re.sub(r'\b([XYMN])\b', r'(?P<\1>.+?)', re.escape(theirs))
        pattern = re.sub(r'\(\?P<(\w)>\.\+\?\)$', r'(?P<\1>.+)', pattern)
        code = re.sub(pattern, re.sub(r'\b([XYMN])\b', r'\\g<\1>', ours), code)
    return code


def small(code):
    """`code` without what only the released weights or a GPU can do."""
    code = re.sub(r'^assert predicted_token == .*\n', '', code, flags=re.MULTILINE)
    return code.replace("'cuda'", "'cpu'").replace('mx.gpu()', 'mx.cpu()')


# -- small weights ------------------------------------------------------------------------------

FORM = {'format': 'pytorch_pretrained_bert', 'scale': 0.3}
WORDS = ['who', 'was', 'jim', 'henson', '?', 'a', 'puppet', '##eer']
DECODER = {**FORM, 'n_positions': 64, 'n_embd': 24}


def make_bert(folder):
    sizes = {'num_hidden_layers': 12, 'num_attention_heads': 4, 'max_position_embeddings': 40}
    tiny.save_bert(folder, WORDS, bert.BertForPreTraining, **sizes, **FORM)


def make_gpt(folder):
    """As the released files, of the model without the head, whose weights are the embedding's."""
    letters = [*string.ascii_lowercase, '?', '.']
    tokens = ['<unk>', *letters, *(f'{letter}</w>' for letter in letters), 'wa', 'was</w>']
    tiny.save_gpt(folder, tokens, ['w a', 'wa s</w>'], gpt.OpenAIGPTModel, **DECODER)


def make_gpt2(folder):
    tiny.save_gpt2(folder, gpt2.GPT2Model, **DECODER)


def make_transfo_xl(folder):
    tokenizer = original.TransfoXLTokenizer(special=['<eos>', '<unk>'], lower_case=False)
    tokenizer.count_sents([['Who', 'was', 'Jim', 'Henson', 'a', '?'] * 2, ['puppeteer', 'who']])
    tokenizer.build_vocab()
    sizes = {'cutoffs': [4, 7], 'n_layer': 3, 'mem_len': 12, 'clamp_len': 10}
    sizes.update(div_val=2, tgt_len=8, same_length=True)
    block = tiny.make(transfo_xl.TransfoXLLMHeadModel, len(tokenizer), **sizes)
    block.save_pretrained(str(folder), format='pytorch_pretrained_bert')
    tokenizer.save_vocabulary(str(folder))


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    """Name of a model -> folder of its small weights, in a cache of the hub's."""
    cache = tmp_path_factory.mktemp('hub')
    makers = make_bert, make_gpt, make_transfo_xl, make_gpt2
    result = {'cache': cache}
    for name, make in zip(NAMES, makers):
        repository = get_entry(*resolve(name)).hub.replace('/', '--')
        main = cache / f'models--{repository}' / 'refs' / 'main'
        main.parent.mkdir(parents=True)
        main.write_text('1' * 40)
        result[name] = main.parents[1] / 'snapshots' / ('1' * 40)
        make(result[name])
    return result


@pytest.fixture
def places(folders, tmp_path, monkeypatch):
    """Our names are found in that cache only; both run in an empty folder."""
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(folders['cache']))
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'home'))
    name = "Hugging Face hub's cache"
    monkeypatch.setattr(find, 'HERE', {name: find.HERE[name]})
    monkeypatch.setattr(find, 'ELSEWHERE', {})
    for name in NAMES:  # what was made is what the catalogue has
        entry = get_entry(*resolve(name))
        entry = dataclasses.replace(
            entry, hub_revision=None, hub_sha256=sha256_of(folders[name] / 'pytorch_model.bin')
        )
        monkeypatch.setitem(catalogue._ENTRIES, (entry.model, entry.dataset), entry)
    monkeypatch.setattr(torch.Tensor, 'byte', torch.Tensor.bool)  # as today's torch wants masks
    load = torch.load
    monkeypatch.setattr(
        torch, 'load', lambda *args, **kwargs: load(*args, **{**kwargs, 'weights_only': False})
    )
    for folder in ('theirs', 'ours'):
        (tmp_path / folder / 'models').mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return folders


# -- running ------------------------------------------------------------------------------------


def run_theirs(code, folders, names):
    for name in NAMES:
        code = code.replace(repr(name), repr(str(folders[name])))
    os.chdir('theirs')
    try:
        exec(compile(small(code), 'theirs', 'exec'), names)
    finally:
        os.chdir('..')
    return names


def run_ours(code, names):
    os.chdir('ours')
    try:
        exec(compile(small(translated(code)), 'ours', 'exec'), names)
    finally:
        os.chdir('..')
    return names


def assert_same(theirs, ours, name):
    if isinstance(theirs, torch.Tensor):
        theirs = theirs.detach().numpy()
        scale = max(1, np.abs(theirs).max())
        assert ours.shape == theirs.shape, name
        np.testing.assert_allclose(ours.asnumpy(), theirs, atol=2e-5 * scale, err_msg=name)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), name
        for one, two in zip(theirs, ours):
            assert_same(one, two, name)
    else:
        assert ours == theirs, name


def compare(theirs, ours):
    """Compare what both have left; returns the names."""
    plain = (torch.Tensor, list, tuple, str, int)
    names = [name for name, each in theirs.items() if name[0] != '_' and isinstance(each, plain)]
    for name in names:
        found = ours[name]
        # 0.6.2 as released returns the last layer's states, the description and ours all layers'
        if name.startswith('hidden_states') and isinstance(found, list):
            found = found[-1]
        assert_same(theirs[name], found, name)
    return set(names)


@pytest.mark.parametrize('number', [n for n in PYTHON if n < 17])
def test_quick_start(places, number):
    codes = [BLOCKS[n][1] for n in (AFTER.get(number), number) if n is not None]
    theirs, ours = {}, {}
    for code in codes:
        run_theirs(code, places, theirs)
        run_ours(code, ours)
    names = compare(theirs, ours)
    outputs = {
        5: {'indexed_tokens', 'segments_tensors'},
        8: {'tokens_tensor'},
        11: {'tokens_tensor_2'},
        14: {'tokens_tensor_2'},
        6: {'encoded_layers'},
        7: {'predictions', 'predicted_token'},
        9: {'hidden_states'},
        10: {'predictions', 'predicted_token'},
        12: {'hidden_states_2', 'mems_2'},
        13: {'predictions_2', 'mems_2', 'predicted_token'},
        15: {'hidden_states_2', 'past'},
        16: {'predictions_2', 'past', 'predicted_token'},
    }
    assert names >= outputs[number]


BERT_CLASSES = [
    name
    for name in dir(original)
    if name.startswith('Bert') and name not in ('BertAdam', 'BertConfig', 'BertTokenizer')
]


@pytest.mark.parametrize('name', BERT_CLASSES)
def test_loading(places, name):
    """0.3 writes ``from_pretrain``, which it doesn't have either."""
    import mxnet_pretrained_bert

    code = BLOCKS[17][1]
    if name == 'BertModel':
        code = code.replace('from_pretrained(', 'from_pretrain(')
    ours = run_ours(
        code,
        {
            'BERT_CLASS': getattr(mxnet_pretrained_bert, name),
            'PRE_TRAINED_MODEL_NAME_OR_PATH': 'bert-base-uncased',
        },
    )['model']
    options = {
        'BertForMultipleChoice': {'num_choices': 2},
        **{f'BertFor{each}Classification': {'num_labels': 2} for each in ('Sequence', 'Token')},
    }
    folder = str(places['bert-base-uncased'])
    theirs = getattr(original, name).from_pretrained(folder, **options.get(name, {}))
    state = theirs.state_dict()
    head = ('classifier', 'qa_outputs')  # initialized at random
    assert state.keys() >= {key for key in ours.state_dict() if 'pooler' not in key}
    for key, value in ours.state_dict().items():
        if not key.startswith(head):
            np.testing.assert_array_equal(value.asnumpy(), state[key].numpy())


def test_all_families(places):
    code = BLOCKS[18][1]
    ours = run_ours('from pytorch_pretrained_bert import *\n' + code, {})
    # in 0.6.2 this class wants its number of labels
    loading = "BertForSequenceClassification.from_pretrained('bert-base-uncased'"
    assert loading in code
    code = code.replace(loading, loading + ', num_labels=2')
    theirs = run_theirs('from pytorch_pretrained_bert import *\n' + code, places, {})
    text = 'Who was Jim Henson ?'
    assert ours['tokenizer'].encode(text) == theirs['tokenizer'].encode(text)
    assert type(ours['model']).__name__ == 'GPT2Model'


def test_hidden_states_of_all_layers_from_the_memories(places):
    code = BLOCKS[22][1]
    theirs, ours = {}, {}
    for run, names in ((lambda c, n: run_theirs(c, places, n), theirs), (run_ours, ours)):
        run(BLOCKS[11][1] + 'tokens_tensor = tokens_tensor_2\n', names)
        run("model = TransfoXLModel.from_pretrained('transfo-xl-wt103')\nmodel.eval()\n", names)
        run('with torch.no_grad():\n' + re.sub('^', '    ', code, flags=re.MULTILINE), names)
    assert len(theirs['all_hidden_states']) == 4 and len(ours['all_hidden_states']) == 4
    assert compare(theirs, ours) >= {'all_hidden_states', 'mems'}
    # where the memory isn't shorter than the text
    assert ours['all_hidden_states'][0].shape == ours['hidden_states'].shape
