"""Special tokens in the text that a language model is trained on."""

import pytest
import tiny

from model_zoo.opening import open_model
from model_zoo.tasks.language_model import BlockReading
from model_zoo.tasks.settings import LanguageModelSettings


@pytest.mark.parametrize('splits', [False, True])
def test_special_tokens_in_a_text(tmp_path, splits):
    tiny.save_gpt2(tmp_path / 'model', n_positions=32)
    model, tokenizer, _ = open_model(str(tmp_path / 'model'), 'language_model')
    path, text = tmp_path / 'text.txt', 'the\n<|endoftext|>\nthat<|endoftext|>'
    path.write_text(text)
    settings = LanguageModelSettings(dev_file=str(path), split_special_tokens=splits)
    _, _, tokens = BlockReading(model, tokenizer, settings, None).load(str(path), 2, False, None)
    assert tokenizer.decode(tokens) == text
    assert list(tokens).count(tokenizer.eos_token_id) == (0 if splits else 2)
