"""Checkpoints read from, and written for, torch, transformers and pytorch-pretrained-bert."""

import re

import mxnet as mx
import numpy as np
import pytest
import tiny
from bert_compare import HEADS
from gpt_compare import HEADS as DECODER_HEADS

import bert
import gpt
import gpt2
import transfo_xl
from model_zoo.checkpoint import read_tensors

torch = pytest.importorskip('torch')
original = pytest.importorskip('pytorch_pretrained_bert')
transformers = pytest.importorskip('transformers')
load_file = pytest.importorskip('safetensors.torch').load_file
pytestmark = pytest.mark.peers

BERT = tiny.bert_config(31, num_labels=3)
GPT = tiny.decoder_config(gpt.OpenAIGPTConfig, 31)
GPT2 = tiny.decoder_config(gpt2.GPT2Config, 31)
XL = {'cutoffs': [8, 16], 'd_head': 3, 'tgt_len': 7, 'mem_len': 5, 'clamp_len': 9}
XL_SPLIT = tiny.transfo_xl_config(31, **XL, same_length=False, div_val=2, untie_r=True)

#: those that take rows of words
BERTS = ['BertModel', *(name for name in HEADS if name != 'BertForMultipleChoice')]
BLOCKS = {
    **{name: (getattr(bert, name), BERT) for name in BERTS},
    **{name: (getattr(gpt, name), GPT) for name in ('OpenAIGPTModel', *DECODER_HEADS['gpt'])},
    **{name: (getattr(gpt2, name), GPT2) for name in ('GPT2Model', *DECODER_HEADS['gpt2'])},
    'TransfoXLModel': (transfo_xl.TransfoXLModel, XL_SPLIT),
    'TransfoXLLMHeadModel': (transfo_xl.TransfoXLLMHeadModel, XL_SPLIT),
}
WORDS = np.random.RandomState(0).randint(0, 31, (3, 7))


def make(name):
    block_class, config = BLOCKS[name]
    return tiny.randomized(block_class(config))


def run(block):
    """A block's outputs that are comparable, the first one or two."""
    words = mx.nd.array(WORDS, dtype='int32')
    if 'DoubleHeads' in type(block).__name__:
        outputs = block(words.expand_dims(0), mx.nd.array([[6, 4, 5]]))
    else:
        outputs = block(words)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [output.asnumpy() for output in outputs if isinstance(output, mx.nd.NDArray)]


def run_theirs(model):
    name = type(model).__name__
    words = torch.tensor(WORDS)
    with torch.no_grad():
        if 'DoubleHeads' in name:
            outputs = model(words[None], mc_token_ids=torch.tensor([[6, 4, 5]]))
        else:
            outputs = model(words)
    outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    # 2019's BERT gives a list of all layers first
    outputs = [x[-1] if isinstance(x, list) and name == 'BertModel' else x for x in outputs]
    return [output.numpy() for output in outputs if isinstance(output, torch.Tensor)]


def assert_same(ours, theirs):
    assert len(ours) <= len(theirs)
    for one, two in zip(ours, theirs):
        np.testing.assert_allclose(one.reshape(two.shape), two, rtol=0, atol=1e-5)


# -- transformers ---------------------------------------------------------------------------------


#: it has no Transformer-XL any more
IN_TRANSFORMERS = [name for name in BLOCKS if not name.startswith('TransfoXL')]


@pytest.mark.parametrize('name', IN_TRANSFORMERS)
def test_there_and_back(name, tmp_path):
    """Transformers reads both formats, and we what it writes, in several files."""
    block, kind = make(name), getattr(transformers, name)
    for form in ('pytorch', 'huggingface'):
        block.save_pretrained(str(tmp_path / form), format=form)
        model, info = kind.from_pretrained(str(tmp_path / form), output_loading_info=True)
        assert not any(info.values()), info
        assert model.config.architectures == [name]
        assert_same(run(block), run_theirs(model.eval()))
    model.save_pretrained(str(tmp_path / 'theirs'), max_shard_size='4KB')
    index = tmp_path / 'theirs' / 'model.safetensors.index.json'
    if name in ('BertModel', 'GPT2LMHeadModel'):  # as it wrote them before version 5
        for path in index.parent.glob('*.safetensors'):
            file = path.name.replace('model', 'pytorch_model').replace('safetensors', 'bin')
            torch.save(load_file(path), path.with_name(file))
            path.unlink()
        text = index.read_text().replace('"model-', '"pytorch_model-')
        index.unlink()
        index = index.with_name('pytorch_model.bin.index.json')
        index.write_text(text.replace('.safetensors"', '.bin"'))
    assert index.is_file()
    assert_same(run(BLOCKS[name][0].from_pretrained(str(tmp_path / 'theirs'))), run_theirs(model))


# -- pytorch-pretrained-bert ----------------------------------------------------------------------

#: those whose files both can have; its classifiers take num_labels, its spans need a pooler
IN_2019 = [name for name in BLOCKS if not re.search('(Sequence|Token)Class|Question', name)]


def make_2019(name):
    """The 2019 model with the weights of one of ours, and its configuration."""
    ours = BLOCKS[name][1]
    config_class = {
        'B': original.BertConfig,
        'O': original.OpenAIGPTConfig,
        'G': original.GPT2Config,
        'T': original.TransfoXLConfig,
    }[name[0]]
    config = config_class(ours.vocab_size)
    config.__dict__.update(
        {key: value for key, value in ours.to_dict().items() if key in config.__dict__}
    )
    torch.manual_seed(0)
    module = {'T': 'modeling_transfo_xl'}.get(name[0])
    source = getattr(original, module) if module else original
    model = getattr(source, name)(config).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            norm = key.endswith('weight') and any(n in key for n in ('LayerNorm', 'ln_', 'norm'))
            value.copy_((1.0 if norm else 0.0) + 0.3 * torch.randn_like(value))
    return model, config


@pytest.mark.parametrize('name', IN_2019)
def test_we_read_2019(name, tmp_path):
    """Its state_dict and configuration, as a pickle of that time and as torch writes it today."""
    model, config = make_2019(name)
    zipped = 'Model' not in name  # `test_same_as_torch_reads` has all contents in both forms
    torch.save(
        model.state_dict(), tmp_path / 'pytorch_model.bin', _use_new_zipfile_serialization=zipped
    )
    (tmp_path / 'config.json').write_text(config.to_json_string())
    epsilon = {'layer_norm_eps': 1e-12} if name.startswith('Bert') else {}
    block = BLOCKS[name][0].from_pretrained(str(tmp_path), **epsilon)
    if name.startswith('TransfoXL'):  # its masks need an older torch: compare the parameters
        ours = block.tensors_in('pytorch')
        for key, value in model.state_dict().items():
            np.testing.assert_array_equal(ours[key], value.numpy())
        return
    assert_same(run(block), run_theirs(model))


@pytest.mark.parametrize('name', [n for n in IN_2019 if not n.startswith('T')])
def test_2019_reads_ours(name, tmp_path):
    block = make(name)
    block.save_pretrained(str(tmp_path), format='pytorch_pretrained_bert')
    if 'GPT' in name:  # its buffers included
        make_2019(name)[0].load_state_dict(torch.load(tmp_path / 'pytorch_model.bin'), strict=True)
    (tmp_path / 'bert_config.json').write_text((tmp_path / 'config.json').read_text())
    model = getattr(original, name).from_pretrained(str(tmp_path)).eval()
    assert_same(run(block), run_theirs(model))


# -- files of PyTorch's ---------------------------------------------------------------------------


def every_kind():
    """Tensors of all types, shapes and ways to lie in memory."""
    torch.manual_seed(0)
    whole = torch.randn(4, 6, 5)
    numbers = (torch.randn(3, 4) * 10).abs()
    types = (
        'bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128'
    ).split()
    return {
        **{name: numbers.to(getattr(torch, name)) for name in types},
        'whole': whole,
        'tied': whole,
        'window': whole[1:3, ::2, 3:],
        'transposed': whole.permute(2, 0, 1),
        'half of it': whole.half()[2].t(),
        'brain of it': whole.bfloat16()[:, 1],
        'repeated': torch.arange(3.0).expand(2, 3),
        'scalar': torch.tensor(2.5),
        'nothing': torch.zeros(0, 3),
        'no rows of many': whole[:0],
        'parameter': torch.nn.Parameter(torch.ones(2, 2)),
    }


@pytest.mark.parametrize('zipped', [True, False])
@pytest.mark.parametrize('nested', [False, True])
def test_same_as_torch_reads(zipped, nested, tmp_path):
    path = str(tmp_path / 'model_steps_3.pt')
    content = every_kind()
    content['parameter'].note = 'an attribute'
    if nested:
        optimizer = torch.optim.Adam([content['parameter']])
        content['parameter'].sum().backward()
        optimizer.step()
        content = {
            'step': 3,
            'optimizer': optimizer.state_dict(),
            'state_dict': content,
            'ema': {'whole': content['whole']},
            'options': ['a', (1, 2.5, None)],
        }
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    theirs = torch.load(path, weights_only=True)
    theirs = theirs['state_dict'] if nested else theirs
    ours, _ = read_tensors(path)
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        if tensor.dtype in (torch.float16, torch.bfloat16):
            tensor = tensor.float()
        want = tensor.detach().numpy()
        assert ours[name].dtype == want.dtype and ours[name].shape == want.shape, name
        np.testing.assert_array_equal(ours[name], want, name)
    assert np.shares_memory(ours['whole'], ours['tied'])
