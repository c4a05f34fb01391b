"""scripts/generate_gpt2.py on small random models."""

import csv
import io
import json
import re
import string
import sys

import pytest
import tiny
from script_runs import SCRIPTS, refusal, run

from gpt2 import GPT2LMHeadModel, GPT2Tokenizer
from model_zoo.generation import generate

SCRIPT = SCRIPTS / 'generate_gpt2.py'

BAR = '=' * 40

SIZES = {'n_embd': 32, 'scale': 0.5}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A GPT-2 whose tokens are bytes."""
    path = tmp_path_factory.mktemp('models') / 'small'
    tiny.save_gpt2(path, n_positions=48, **SIZES)
    return path


@pytest.fixture
def say(script, capsys):
    """``say(folder, *flags)``: what the script prints, which must succeed."""

    def say(folder, *flags):
        capsys.readouterr()
        assert run(script, '--model_name_or_path', folder, *flags) == 0
        return capsys.readouterr().out

    return say


def expected(folder, prompts, count, **options):
    block = GPT2LMHeadModel.from_pretrained(str(folder))
    tokenizer = GPT2Tokenizer.from_pretrained(str(folder))
    found = generate(block, [tokenizer.encode(prompt) for prompt in prompts], count, **options)
    return [[tokenizer.decode(each.tokens) for each in of_prompt] for of_prompt in found]


def test_a_prompt(say, folder):
    out = say(folder, '--prompt', 'the', '--greedy', '--length', 20)
    ((text,),) = expected(folder, ['the'], 20)
    assert out == f'{BAR} SAMPLE 1 {BAR}\n{text}\n{"=" * 80}\n'


def test_model_and_texts_come_first(script, folder, tmp_path):
    prompts, output = tmp_path / 'prompts.csv', tmp_path / 'texts.csv'
    prompts.write_text('id,start\n1,the\n')
    more = '--greedy', '--length', 20, '--output', output
    for source in (['the'], ['--file', prompts, '--text_column', 'start']):
        assert run(script, folder, *source, *more) == 0
        (row,) = csv.DictReader(output.open())
        assert [[row['text']]] == expected(folder, ['the'], 20)
        assert row['prompt'] == 'the' and len(json.loads(row['tokens'])) == 20


def test_a_file_and_a_json_file(say, folder, tmp_path):
    prompts, output = tmp_path / 'prompts.txt', tmp_path / 'texts.json'
    prompts.write_text('the\n\nOnce upon a time\r\n', 'utf-8')
    beams = '--num_beams', 3, '--nsamples', 2, '--batch_size', 4, '--length', 9
    out = say(folder, '--input_file', prompts, *beams, '--output', output)
    texts = ['the', 'Once upon a time']
    samples = expected(folder, texts, 9, num_beams=3, num_return_sequences=2)
    results = json.loads(output.read_text('utf-8'))
    assert [result['prompt'] for result in results] == texts
    assert [[each['text'] for each in result['samples']] for result in results] == samples
    for sample in (sample for result in results for sample in result['samples']):
        assert len(sample['tokens']) == 9 and sample['log_prob'] < 0
        assert sample['finish'] == 'length'
    found = re.findall('Prompt: the|Prompt: Once|SAMPLE [1-4]', out)
    assert found == ['Prompt: the', 'SAMPLE 1', 'SAMPLE 2', 'Prompt: Once', 'SAMPLE 3', 'SAMPLE 4']


def test_unconditional_samples(say, folder, tmp_path):
    def samples(*more):
        output = tmp_path / 'texts.json'
        flags = ('--unconditional', '--nsamples', 5, '--length', 12, '--temperature', 1.5)
        out = say(folder, *flags, '--top_k', 40, '--output', output, *more)
        assert out.count(' SAMPLE ') == 5
        (result,) = json.loads(output.read_text('utf-8'))
        assert result['prompt'] is None
        return [tuple(each['tokens']) for each in result['samples']]

    first = samples()
    assert len(set(first)) == 5
    assert samples() == first
    assert set(samples('--seed', 1)).isdisjoint(first)
    assert len(set(samples('--batch_size', 2))) == 5


def test_streams_print_the_same(say, folder):
    flags = ('--prompt', 'the', 'a', '--top_p', 0.9, '--length', 30, '--nsamples', 2)
    assert say(folder, *flags, '--stream') == say(folder, *flags)


def test_a_stop_token(say, folder, tmp_path):
    ((text,),) = expected(folder, ['the'], 30)
    stop = next(char for char in text[3:] if ' ' < char < '\x7f')
    output = tmp_path / 'texts.json'
    flags = ('--prompt', 'the', '--greedy', '--length', 30, '--output', output)
    out = say(folder, *flags, '--stop', stop, '<|endoftext|>')
    assert f'\n{text[: text.index(stop)]}\n' in out
    assert json.loads(output.read_text('utf-8'))[0]['samples'][0]['finish'] == 'stop'


def test_a_conversation(script, folder, capsys, monkeypatch):
    lines = ['the', '', 'the']
    monkeypatch.setattr(sys, 'stdin', io.StringIO('\n'.join(lines) + '\n'))
    assert run(script, '--model_name_or_path', folder, '--length', 15) == 0
    out, _ = capsys.readouterr()
    assert out.count('Model prompt >>> ') == 4
    assert 'Prompt should not be empty!' in out
    texts = [part.split('=' * 80)[0] for part in out.split(f'SAMPLE 1 {BAR}\n')[1:]]
    assert len(texts) == len(set(texts)) == 2, 'the same prompt is continued differently'


def test_a_gpts_folder(script, say, tmp_path, capsys):
    letters = string.ascii_lowercase
    tokens = [*letters, *(letter + '</w>' for letter in letters), 'th', 'the</w>', '<unk>']
    folder = tmp_path / 'gpt'
    tiny.save_gpt(folder, tokens, ['t h', 'th e</w>'], n_positions=32, **SIZES)
    flags = ('--prompt', 'the cat', '--length', 20)
    out = say(folder, *flags)
    assert out.count('SAMPLE') == 1
    assert say(folder, *flags, '--stream') == out
    said = refusal(capsys, script, '--model_name_or_path', folder, '--unconditional')
    assert 'no token to begin with' in said
