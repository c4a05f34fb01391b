"""SHA256SUMS beside saved models: damaged weights are refused."""

import shutil
import subprocess

import pytest
import tiny

from bert import BertForSequenceClassification, BertTokenizer
from gpt import OpenAIGPTLMHeadModel
from model_zoo import open_model
from model_zoo.checkpoint.readers import SUMS, check_sums, read_sums, sums_path, write_sums
from model_zoo.errors import CheckpointError


@pytest.fixture
def block():
    return tiny.make(BertForSequenceClassification, len(tiny.SPECIAL) + 2)


@pytest.fixture
def tokenizer(tmp_path):
    return BertTokenizer(str(tiny.write_words(tmp_path, 'ab')))


def flip_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize('weights', ['model.params', 'model.safetensors', 'pytorch_model.bin'])
def test_weights_that_changed_are_refused(tmp_path, block, tokenizer, weights):
    folder, forms = tmp_path / 'model', {'params': 'native', 'bin': 'pytorch'}
    form = forms.get(weights.partition('.')[2], 'huggingface')
    block.save_pretrained(folder, tokenizer, format=form)
    assert {SUMS, *read_sums(folder / SUMS)} == {path.name for path in folder.iterdir()}
    subprocess.run(['sha256sum', '--check', '--quiet', SUMS], cwd=folder, check=True)
    BertForSequenceClassification.from_pretrained(folder)
    flip_last_byte(folder / weights)
    with pytest.raises(CheckpointError):
        BertForSequenceClassification.from_pretrained(folder)


def test_each_of_the_numpy_files_is_checked(fixtures, tmp_path):
    folder = shutil.copytree(fixtures / 'checkpoints' / 'gpt_numpy', tmp_path / 'gpt')
    write_sums(folder / SUMS, list(folder.iterdir()))
    OpenAIGPTLMHeadModel.from_pretrained(folder)
    flip_last_byte(folder / 'params_9.npy')
    with pytest.raises(CheckpointError):
        OpenAIGPTLMHeadModel.from_pretrained(folder)


def test_weights_replaced_on_purpose(tmp_path, block, tokenizer):
    """Ours bring the checksums up to date; others are taken once the checksums are gone."""
    block.save_pretrained(tmp_path, tokenizer)
    block.initialize(force_reinit=True)
    block.save_parameters(str(tmp_path / 'model.params'))
    check_sums(tmp_path / SUMS)
    old = (tmp_path / 'model.params').read_bytes()
    block.initialize(force_reinit=True)
    block.save_parameters(str(tmp_path / 'other.params'))
    assert 'other.params' not in read_sums(tmp_path / SUMS)
    (tmp_path / 'other.params').replace(tmp_path / 'model.params')
    assert (tmp_path / 'model.params').read_bytes() != old
    with pytest.raises(CheckpointError):
        open_model(str(tmp_path))
    (tmp_path / SUMS).unlink()
    open_model(str(tmp_path))


def test_saving_again(tmp_path, block, tokenizer, caplog):
    """Files of an earlier save keep their checksums, new ones get theirs."""
    block.save_pretrained(tmp_path, tokenizer)
    before = read_sums(tmp_path / SUMS)
    block.save_pretrained(tmp_path, tokenizer, format='huggingface')
    after = read_sums(tmp_path / SUMS)
    assert after['model.params'] == before['model.params']
    assert 'model.safetensors' in after
    check_sums(tmp_path / SUMS)
    (tmp_path / 'vocab.txt').write_text('')
    tokenizer.save_pretrained(tmp_path)
    check_sums(tmp_path / SUMS)


def test_a_failed_save_leaves_no_wrong_checksums(tmp_path, block, monkeypatch):
    block.save_pretrained(tmp_path)

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(block, 'save_parameters', fail)
    with pytest.raises(KeyboardInterrupt):
        block.save_pretrained(tmp_path)
    assert SUMS not in {path.name for path in tmp_path.iterdir()}
    BertForSequenceClassification.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    'name', [None, '/dev/zero', '../outside', 'a\0b', '\xff' * 80], ids=range(5)
)
def test_checksums_that_cannot_be(tmp_path, block, name):
    block.save_pretrained(tmp_path)
    (tmp_path / SUMS).write_text(f'{"0" * 64}  {name}\n' if name else 'x', 'latin-1')
    with pytest.raises(CheckpointError):
        BertForSequenceClassification.from_pretrained(tmp_path)


def test_checksums_of_an_export(tmp_path):
    files = [tmp_path / 'a-symbol.json', tmp_path / 'a-0000.params']
    for file in files:
        file.write_bytes(b'content')
    path = sums_path(str(files[0]))
    check_sums(path)  # of an export without them
    write_sums(path, [str(file) for file in files])
    check_sums(path)
    files[1].write_bytes(b'contend')
    with pytest.raises(CheckpointError):
        check_sums(path)
    files[1].unlink()
    with pytest.raises(CheckpointError):
        check_sums(path)
