"""GPT and GPT-2 in the zoo: names, overrides, weights by path and cache, vocabularies."""

import gluonnlp
import mxnet as mx
import pytest
import tiny
from arrays import assert_same
from gpt_compare import HEADS, PACKAGES

import model_zoo
from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError
from model_zoo.pretrained import list_pretrained, resolve_alias

pytestmark = pytest.mark.usefixtures('no_network')

SMALL = {
    'num_layers': 2,
    'units': 16,
    'num_heads': 4,
    'max_length': 20,
    'hparam_allow_override': True,
}
CONFIG = {'n_layer': 2, 'n_embd': 16, 'n_head': 4, 'n_positions': 20, 'n_ctx': 20}
NAMES = {'gpt': 'gpt_12_768_12', 'gpt2': 'gpt2_12_768_12'}
ENTRIES = {'gpt': 'gpt_12_768_12_book_corpus', 'gpt2': 'gpt2_12_768_12_openai_webtext'}
# the tokens in the order of their ids, and the merges that lead to them
TOKENS = {
    'gpt': ['l', 'o', 'w', 'l</w>', 'o</w>', 'w</w>', 'lo', 'low</w>', '<unk>'],
    'gpt2': ['l', 'o', 'w', 'Ġ', 'lo', 'low', 'Ġlow', '<|endoftext|>'],
}
MERGES = {'gpt': ['l o', 'lo w</w>'], 'gpt2': ['l o', 'lo w', 'Ġ low']}


@pytest.fixture(params=sorted(NAMES))
def family(request):
    return request.param


@pytest.fixture
def vocab(family):
    return gluonnlp.Vocab(
        unknown_token=None, padding_token=None, bos_token=None, eos_token=None,
        counter=gluonnlp.data.count_tokens(TOKENS[family]),
    )  # fmt: skip


def make(family, name=None, **changes):
    package = PACKAGES[family]
    name = name or HEADS[family][0]
    config = package.OpenAIGPTConfig if family == 'gpt' else package.GPT2Config
    block = getattr(package, name)(
        config(**{**CONFIG, 'vocab_size': len(TOKENS[family]), **changes})
    )
    block.initialize(mx.init.Normal(0.5))
    return block


def save(block, family, folder):
    """The block's files, and those of a tokenizer as the Hugging Face hub has them."""
    block.save_pretrained(str(folder))
    tiny.write_pairs(folder, TOKENS[family], MERGES[family])
    return str(folder)


def run(block):
    words = mx.nd.array([[1, 2, 3], [4, 0, 5]], dtype='int32')
    outputs = block(words)
    return outputs[0] if isinstance(outputs, list) else outputs


# -- names and overrides ------------------------------------------------------------------------


def test_names():
    assert model_zoo.list_models('gpt*') == [
        'gpt2_117m', 'gpt2_12_768_12', 'gpt2_1558m', 'gpt2_24_1024_16', 'gpt2_345m',
        'gpt2_36_1280_20', 'gpt2_48_1600_25', 'gpt2_774m', 'gpt_12_768_12',
    ]  # fmt: skip
    assert model_zoo.list_models('gpt*', pretrained=True) == model_zoo.list_models('gpt*')
    assert {entry.full_name for entry in list_pretrained('gpt*')} == {
        *ENTRIES.values(), 'gpt2_24_1024_16_openai_webtext', 'gpt2_36_1280_20_openai_webtext',
        'gpt2_48_1600_25_openai_webtext',
    }  # fmt: skip
    assert resolve_alias('gpt2-large')[0] == resolve_alias('gpt2_774m')[0] == 'gpt2_36_1280_20'
    assert resolve_alias('gpt2-xl')[0] == resolve_alias('gpt2_1558m')[0] == 'gpt2_48_1600_25'
    assert resolve_alias('gpt2') == resolve_alias('gpt2_117m') == ('gpt2_12_768_12',
                                                                   'openai_webtext')  # fmt: skip
    assert resolve_alias('gpt2-medium')[0] == resolve_alias('gpt2_345m')[0] == 'gpt2_24_1024_16'
    assert resolve_alias('openai-gpt') == ('gpt_12_768_12', 'book_corpus')


@pytest.mark.parametrize(
    'name, layers, units, heads, positions',
    [
        ('gpt_12_768_12', 12, 768, 12, 512),
        ('gpt2_12_768_12', 12, 768, 12, 1024),
        ('gpt2_117m', 12, 768, 12, 1024),
        ('gpt2_24_1024_16', 24, 1024, 16, 1024),
        ('gpt2_345m', 24, 1024, 16, 1024),
        ('gpt2_36_1280_20', 36, 1280, 20, 1024),
        ('gpt2_48_1600_25', 48, 1600, 25, 1024),
    ],
)
def test_architectures(name, layers, units, heads, positions):
    vocab = gluonnlp.Vocab(gluonnlp.data.count_tokens(list('abcdefgh')))
    block, same = model_zoo.get_model(name, vocab=vocab, pretrained=False)
    assert same is vocab
    assert type(block).__name__ == ('GPT2LMHeadModel' if 'gpt2' in name else 'OpenAIGPTLMHeadModel')
    config = block.config
    assert (config.n_layer, config.n_embd, config.n_head) == (layers, units, heads)
    assert config.n_positions == config.n_ctx == positions == block.context_length
    assert config.intermediate_size == 4 * units and config.vocab_size == len(vocab)
    with pytest.raises(RuntimeError):  # not initialized, as GluonNLP's
        block.transformer.position_weight.data()


def test_overrides(family, vocab):
    block, _ = model_zoo.get_model(
        NAMES[family], vocab=vocab, pretrained=False, **SMALL, activation='relu', embed_size=16,
        layer_norm_eps=1e-3, dropout=0.25,
    )  # fmt: skip
    config = block.config
    assert (config.n_layer, config.n_embd, config.n_head) == (2, 16, 4)
    assert (config.n_positions, config.n_ctx, config.activation) == (20, 20, 'relu')
    assert config.resid_pdrop == config.embd_pdrop == config.attn_pdrop == 0.25
    assert config.layer_norm_epsilon == 1e-3
    block.initialize()
    assert run(block).shape == (2, 3, len(vocab))


def test_overrides_that_differ_by_family(family, vocab):
    def get(**kwargs):
        return model_zoo.get_model(NAMES[family], vocab=vocab, pretrained=False, **kwargs)

    with pytest.raises(InputError, match='embed_size must equal units'):
        get(**{**SMALL, 'embed_size': 8})

    assert get(dropout=0)[0].config.attn_pdrop == 0
    if family == 'gpt':
        with pytest.raises(InputError, match="has no option 'hidden_size'"):
            get(**SMALL, hidden_size=20)
    else:
        assert get(**SMALL, hidden_size=20)[0].config.intermediate_size == 20


def test_flags_and_outputs(family, vocab):
    block, _ = model_zoo.get_model(
        NAMES[family], vocab=vocab, pretrained=False, output_attention=True, **SMALL,
        output_all_encodings=True, keep_multihead_output=True, predict_special_tokens=False,
    )  # fmt: skip
    block.initialize()
    block.set_num_special_tokens(2)
    scores, *_, attentions = block(mx.nd.array([[1, 2]]))
    assert scores.shape == (1, 2, len(vocab)) and len(attentions) == 2
    assert len(block.get_multihead_outputs()) == 2
    assert len(block.transformer(mx.nd.array([[1, 2]]))[0]) == 3


def test_nothing_found(family):
    message = f'no pretrained weights found for {NAMES[family]}'
    with pytest.raises(PretrainedNotFoundError, match=message) as caught:
        model_zoo.get_model(NAMES[family])
    assert 'vocab.json and merges.txt' in str(caught.value)
    assert 'vocab.txt' not in str(caught.value)


# -- weights ------------------------------------------------------------------------------------


def test_cache(tmp_path, family):
    saved = make(family)
    folder = tmp_path / 'home' / 'models' / ENTRIES[family]
    folder.mkdir(parents=True)
    save(saved, family, folder)
    names = [NAMES[family], *(['gpt2_117m'] if family == 'gpt2' else [])]
    for name in names:
        block, vocab = model_zoo.get_model(name)
        assert vocab.idx_to_token == TOKENS[family]
        assert_same(run(block), run(saved), 1e-6)
    lm = type(saved)
    for name in (NAMES[family], ENTRIES[family], *(['gpt2'] if family == 'gpt2' else [])):
        block = lm.from_pretrained(name)
        assert_same(run(block), run(saved), 1e-6)
        assert block.own_tokenizer().convert_tokens_to_ids(TOKENS[family]) == list(
            range(len(TOKENS[family]))
        )


def test_path(tmp_path, family, vocab):
    saved = make(family)
    folder = save(saved, family, tmp_path)
    for path in (folder, str(tmp_path / 'model.params')):
        block, found = model_zoo.get_model(NAMES[family], pretrained=path)
        assert found.idx_to_token == TOKENS[family]
        assert_same(run(block), run(saved), 1e-6)
        block, same = model_zoo.get_model(NAMES[family], pretrained=path, vocab=vocab)
        assert same is vocab and block.own_tokenizer() is None


def test_weights_of_double_heads_and_of_the_model(tmp_path, family):
    """The zoo's block takes what it needs."""
    for name in (HEADS[family][1], 'OpenAIGPTModel' if family == 'gpt' else 'GPT2Model'):
        saved = make(family, name)
        block, _ = model_zoo.get_model(NAMES[family], pretrained=save(saved, family, tmp_path))
        language = type(block)(saved.base)
        assert_same(run(block), run(language), 1e-6)


def test_lone_file(tmp_path, family, vocab):
    """The architecture comes from the name and the overrides."""
    saved = make(family)
    path = str(tmp_path / 'lone.params')
    for form in ('native', 'huggingface'):
        saved.save_parameters(path, format=form)
        block, _ = model_zoo.get_model(NAMES[family], pretrained=path, vocab=vocab, **SMALL)
        assert_same(run(block), run(saved), 1e-6)


def test_weights_of_another_family(tmp_path, family):
    other = next(each for each in NAMES if each != family)
    saved = make(other, vocab_size=9)
    folder = save(saved, family, tmp_path)  # with the vocabulary of this one
    with pytest.raises(InputError, match='config.json.* is of another family, '):
        model_zoo.get_model(NAMES[family], pretrained=folder)
    own = make(family, vocab_size=9)  # its configuration beside the other's weights
    own.config.to_json_file(str(tmp_path / 'config.json'))
    with pytest.raises(CheckpointError, match='a checkpoint of another family, '):
        model_zoo.get_model(NAMES[family], pretrained=folder)
    saved.save_parameters(str(tmp_path / 'model.params'), format='huggingface')
    with pytest.raises(CheckpointError, match='lacks parameters: position_weight, word_embed'):
        model_zoo.get_model(NAMES[family], pretrained=folder)


def test_weights_with_special_tokens(tmp_path, family):
    saved = make(family, n_special=2)
    folder = save(saved, family, tmp_path)
    (tmp_path / 'special_tokens.txt').write_text('_start_\n_end_\n')
    block, vocab = model_zoo.get_model(NAMES[family], pretrained=folder)
    assert len(vocab) == len(TOKENS[family]) and block.config.n_special == 2
    assert_same(run(block), run(saved), 1e-6)
    tokenizer = block.own_tokenizer()
    assert tokenizer.special_tokens['_end_'] == len(vocab) + 1
    target = tmp_path / 'again'
    block.save_pretrained(str(target))  # the tokenizer's files among them
    again, _ = model_zoo.get_model(NAMES[family], pretrained=str(target))
    assert_same(run(again), run(saved), 1e-6)
    assert again.own_tokenizer().special_tokens == tokenizer.special_tokens
