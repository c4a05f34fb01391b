"""Special tokens in the text that a language model is trained on."""

import pytest
import tiny

import model_zoo
from model_zoo.opening import open_model
from model_zoo.tasks.language_model import BlockReading
from model_zoo.tasks.settings import LanguageModelSettings
from transfo_xl import TransfoXLTokenizer


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
    model.save_pretrained(str(tmp_path / 'trained'), tokenizer)
    pipe = model_zoo.pipeline(str(tmp_path / 'trained'))
    assert pipe.encode_prompt(text) == list(tokens), 'use reads a text as training does'


def test_lines_of_a_prompt_of_transformer_xl(tmp_path):
    path, text = tmp_path / 'text.txt', 'a b\n\nb <eos> c\n'
    path.write_text(text)
    tokenizer = TransfoXLTokenizer(special=['<unk>', '<eos>'])
    tokenizer.count_file(path, add_eos=True)
    tokenizer.build_vocab()
    assert tokenizer.encode_text(text) == list(tokenizer.encode_file(path, ordered=True))
