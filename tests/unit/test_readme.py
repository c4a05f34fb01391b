"""README.rst: its Python runs and prints what it says, its table and its commands are right."""

import importlib
import pathlib
import re
import runpy
import shlex
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / 'README.rst').read_text(encoding='utf-8')

BLOCK = re.compile(r'^\.\. code-block:: python\n\n((?: {4}.*\n|\n)+)', re.MULTILINE)
BLOCKS = [textwrap.dedent(match.group(1)) for match in BLOCK.finditer(README)]
# what horovodrun starts is a command as the others
COMMANDS = re.findall(
    r'^ +\$ (?:horovodrun .*?(?=python))?((?:python|bert-embedding) .*)', README, re.MULTILINE
)


def expected_output(block):
    """What the comments behind and below the block's prints promise, a line each."""
    lines = block.splitlines()
    for line, following in zip(lines, [*lines[1:], '']):
        if line.startswith('print('):
            promise = re.search(r'\)  # (.*)', line) or re.match('# (.*)', following)
            yield promise.group(1) if promise else '(the README does not say)'


def test_blocks_are_found():
    assert len(BLOCKS) >= 8
    assert len(COMMANDS) >= 8


@pytest.mark.weights
@pytest.mark.parametrize('block', BLOCKS, ids=range(len(BLOCKS)))
def test_python_runs(block, minilm_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, 'README.rst', 'exec'), {})
    assert capsys.readouterr().out.splitlines() == list(expected_output(block))


def test_table_is_up_to_date():
    updated = runpy.run_path(str(ROOT / 'docs' / 'readme_table.py'))['updated']
    assert updated(README) == README, 'run: python docs/readme_table.py'


@pytest.mark.parametrize('command', COMMANDS)
def test_commands_are_understood(command, tmp_path, monkeypatch):
    words = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    for word in words[2:]:
        if re.fullmatch(r'[\w./-]+\.(txt|tsv|csv|json)', word):
            pathlib.Path(word).parent.mkdir(exist_ok=True)
            pathlib.Path(word).touch()
        elif re.fullmatch(r'(output_dir/|for_)\w+', word):
            pathlib.Path(word).mkdir(parents=True, exist_ok=True)
    if words[0] == 'bert-embedding':
        names = vars(importlib.import_module('bert_embedding.cli'))
    else:
        script = ROOT / words.pop(1)
        monkeypatch.syspath_prepend(str(script.parent))  # as Python does for a script
        names = runpy.run_path(str(script), run_name='readme')
        names = {**vars(names.get('run_pretraining', object)), **names}  # whose parser is that
    parse = next(names[name] for name in ('parse_arguments', 'parse', '_parse') if name in names)
    parse(words[1:])


@pytest.mark.weights
def test_embedding_command_prints_what_the_readme_says(minilm_dir, monkeypatch, capsys):
    from bert_embedding.cli import main

    # its handler would stay after this test and write to a stream that is closed then
    monkeypatch.setattr('bert_embedding.cli.setup_logging', lambda **kwargs: None)
    command, promise = re.search(r'\$ bert-embedding (.*)\n((?: {4}.*\n)+)', README).groups()
    main(shlex.split(command))
    number = r'-?\d+\.\d*'
    printed, promise = capsys.readouterr().out, textwrap.dedent(promise)
    assert re.sub(number, '0', printed).split() == re.sub(number, '0', promise).split()
    pairs = zip(re.findall(number, printed), re.findall(number, promise))
    assert all(abs(float(one) - float(other)) < 1e-4 for one, other in pairs)


def test_files_that_are_named_exist():
    for name in re.findall(r'\b(?:docs|scripts|requirements|export|\.ci)/[\w./]+\w', README):
        assert (ROOT / name).exists(), name
