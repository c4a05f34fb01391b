"""scripts/generate_gpt2.py on small random models."""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import tiny
import warm
from script_runs import start

from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel, GPT2Tokenizer
from model_zoo.app import cli
from model_zoo.generation import generate
from model_zoo.opening import find_family
from transfo_xl import TransfoXLLMHeadModel, TransfoXLTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'scripts' / 'generate_gpt2.py'
BAR = '=' * 40

SIZES = {'n_embd': 32, 'scale': 0.5}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A GPT-2 whose tokens are bytes."""
    path = tmp_path_factory.mktemp('models') / 'small'
    tiny.save_gpt2(path, n_positions=48, **SIZES)
    return path


def run(script, capsys, *arguments):
    """Exit status, standard output and standard error of the script."""
    status = cli.run(script.main, [str(each) for each in arguments])
    return (status, *capsys.readouterr())


def expected(folder, prompts, count, **options):
    block = GPT2LMHeadModel.from_pretrained(str(folder))
    tokenizer = GPT2Tokenizer.from_pretrained(str(folder))
    found = generate(block, [tokenizer.encode(prompt) for prompt in prompts], count, **options)
    return [[tokenizer.decode(each.tokens) for each in of_prompt] for of_prompt in found]


def test_a_prompt(script, folder, capsys):
    status, out, _ = run(
        script, capsys, '--model_name_or_path', folder, '--prompt', 'the', '--greedy', '--length',
        20,
    )  # fmt: skip
    assert status == 0
    ((text,),) = expected(folder, ['the'], 20)
    assert out == f'{BAR} SAMPLE 1 {BAR}\n{text}\n{"=" * 80}\n'


def test_model_and_texts_come_first(script, folder, tmp_path, capsys):
    prompts, output = tmp_path / 'prompts.csv', tmp_path / 'texts.csv'
    prompts.write_text('id,start\n1,the\n')
    more = '--greedy', '--length', 20, '--output', output
    for source in (['the'], ['--file', prompts, '--text_column', 'start']):
        assert run(script, capsys, folder, *source, *more)[0] == 0
        (row,) = csv.DictReader(output.open())
        assert [[row['text']]] == expected(folder, ['the'], 20)
        assert row['prompt'] == 'the' and len(json.loads(row['tokens'])) == 20


def test_a_file_and_a_json_file(script, folder, tmp_path, capsys):
    prompts = tmp_path / 'prompts.txt'
    prompts.write_text('the\n\nOnce upon a time\r\n', 'utf-8')
    output = tmp_path / 'texts.json'
    status, out, _ = run(
        script, capsys, '--model_name_or_path', folder, '--input_file', prompts, '--num_beams', 3,
        '--nsamples', 2, '--batch_size', 4, '--length', 9, '--output', output,
    )  # fmt: skip
    assert status == 0
    texts = ['the', 'Once upon a time']
    samples = expected(folder, texts, 9, num_beams=3, num_return_sequences=2)
    results = json.loads(output.read_text('utf-8'))
    assert [result['prompt'] for result in results] == texts
    assert [[each['text'] for each in result['samples']] for result in results] == samples
    for result in results:
        for sample in result['samples']:
            assert len(sample['tokens']) == 9
            assert sample['finish'] == 'length'
            assert sample['log_prob'] < 0
    places = [out.index(part) for part in ('Prompt: the', ' SAMPLE 1 ', ' SAMPLE 2 ',
                                           'Prompt: Once', ' SAMPLE 3 ', ' SAMPLE 4 ')]  # fmt: skip
    assert places == sorted(places)


def test_unconditional_samples(script, folder, tmp_path, capsys):
    def samples(name, *more):
        output = tmp_path / f'{name}.json'
        status, out, _ = run(
            script, capsys, '--model_name_or_path', folder, '--unconditional', '--nsamples', 5,
            '--length', 12, '--temperature', 1.5, '--top_k', 40, '--output', output, *more,
        )  # fmt: skip
        assert status == 0
        assert out.count(' SAMPLE ') == 5
        (result,) = json.loads(output.read_text('utf-8'))
        assert result['prompt'] is None
        return [tuple(each['tokens']) for each in result['samples']]

    first = samples('first')
    assert len(set(first)) == 5
    assert samples('again') == first
    assert set(samples('another', '--seed', 1)).isdisjoint(first)
    assert len(set(samples('batches', '--batch_size', 2))) == 5


def test_streams_print_the_same(script, folder, capsys):
    flags = ('--model_name_or_path', folder, '--prompt', 'the', '--top_p', 0.9, '--length', 30)
    status, out, _ = run(script, capsys, *flags)
    streamed = run(script, capsys, *flags, '--stream')
    assert streamed[:2] == (status, out) == (0, out)


def test_a_stop_token(script, folder, tmp_path, capsys):
    ((text,),) = expected(folder, ['the'], 30)
    stop = next(char for char in text[3:] if ' ' < char < '\x7f')
    output = tmp_path / 'texts.json'
    _, out, _ = run(
        script, capsys, '--model_name_or_path', folder, '--prompt', 'the', '--greedy', '--length',
        30, '--stop', stop, '<|endoftext|>', '--output', output,
    )  # fmt: skip
    assert f'\n{text[: text.index(stop)]}\n' in out
    assert json.loads(output.read_text('utf-8'))[0]['samples'][0]['finish'] == 'stop'


def test_the_default_length_fits_the_context(script, folder, tmp_path, capsys):
    output = tmp_path / 'texts.json'
    for prompt, more, length in (
        ('the', (), 24),
        ('x' * 40, (), 8),
        ('x' * 40, ('--overflow', 'slide'), 24),
    ):
        status, _, _ = run(
            script, capsys, '--model_name_or_path', folder, '--prompt', prompt, '--output', output,
            *more,
        )  # fmt: skip
        assert status == 0
        assert len(json.loads(output.read_text('utf-8'))[0]['samples'][0]['tokens']) == length


def test_a_conversation(script, folder, capsys, monkeypatch):
    lines = ['the', '', 'x' * 60, 'the']
    monkeypatch.setattr(sys, 'stdin', io.StringIO('\n'.join(lines) + '\n'))
    status, out, err = run(script, capsys, '--model_name_or_path', folder, '--length', 15)
    assert status == 0
    assert out.count('Model prompt >>> ') == 5
    assert 'Prompt should not be empty!' in out
    assert 'error: prompt 0 has 60 tokens, and the context of this model is 48' in err
    texts = [part.split('=' * 80)[0] for part in out.split(f'SAMPLE 1 {BAR}\n')[1:]]
    assert len(texts) == len(set(texts)) == 2, 'the same prompt is continued differently'


@pytest.mark.parametrize('format', ['native', 'huggingface'])
def test_a_gpts_folder(script, tmp_path, capsys, format):
    letters = [chr(ord('a') + n) for n in range(26)]
    tokens = [*letters, *(letter + '</w>' for letter in letters), 'th', 'the</w>', '<unk>']
    folder = tmp_path / 'gpt'
    tiny.save_gpt(folder, tokens, ['t h', 'th e</w>'], n_positions=32, format=format, **SIZES)
    flags = ('--model_name_or_path', folder, '--prompt', 'the cat', '--length', 20)
    status, out, err = run(script, capsys, *flags)
    assert (status, out.count('SAMPLE')) == (0, 1), err
    assert run(script, capsys, *flags, '--stream')[:2] == (status, out)
    status, _, err = run(script, capsys, '--model_name_or_path', folder, '--unconditional')
    assert status == 1
    assert 'error: --unconditional: the vocabulary of this model has none of' in err


def test_a_transformer_xls_folder(script, tmp_path, capsys):
    tokenizer = TransfoXLTokenizer(special=['<unk>', '<eos>'])
    tokenizer.count_sents([[f'word{number}' for number in range(30)]])
    tokenizer.build_vocab()
    config = tiny.transfo_xl_config(32, cutoffs=[10], mem_len=4, init_std=0.5)
    block = TransfoXLLMHeadModel(config)
    block.initialize()
    folder = tmp_path / 'transfo_xl'
    block.save_pretrained(str(folder), tokenizer)
    flags = ('--model_name_or_path', folder, '--prompt', 'word1 word2')
    status, out, err = run(script, capsys, *flags, '--length', 20)
    assert status == 0, err
    words = out.splitlines()[1].split()
    assert len(words) == 20
    assert set(words) <= set(tokenizer.idx2sym)
    assert run(script, capsys, *flags, '--length', 20, '--stream')[:2] == (status, out)
    status, out, err = run(script, capsys, '--model_name_or_path', folder, '--unconditional')
    assert status == 0, err
    assert len(out.splitlines()[1].split()) == 128


def test_a_file_beside_the_working_directorys_configuration(script, tmp_path, monkeypatch):
    """A name isn't taken for a file in the working directory."""
    (tmp_path / 'config.json').write_text('{"model_type": "transfo-xl"}')
    monkeypatch.chdir(tmp_path)
    assert find_family('gpt2').tasks['language_model'] is GPT2LMHeadModel
    assert find_family('openai-gpt').tasks['language_model'] is OpenAIGPTLMHeadModel
    assert find_family('transfo-xl-wt103').tasks['language_model'] is TransfoXLLMHeadModel


def test_the_command(folder, tmp_path):
    """From another folder, with a pipe for prompts."""
    done = warm.run(
        [SCRIPT, '--model_name_or_path', folder, '--length', '5'], tmp_path,
        {**os.environ, 'PYTHONPATH': str(ROOT)}, 'the\n',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('SAMPLE 1') == 1
    assert 'Traceback' not in done.stderr


def test_ctrl_c(folder, tmp_path):
    process = start(
        SCRIPT, '--model_name_or_path', folder, cwd=tmp_path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    shown = ''
    while not shown.endswith('>>> '):
        shown += process.stdout.read(1)
        assert process.poll() is None
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    with process:
        err = process.stderr.read()
    assert process.returncode == 130
    assert err.splitlines()[-1] == 'interrupted'
    assert 'Traceback' not in err
