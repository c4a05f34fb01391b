"""The runner of the pages: a made-up page that is right, and ways to spoil it."""

import json

import commands
import pages
import places
import pytest
import real_data

PAGE = '''Title
=====

Text::

    a: format

.. code-block:: python

    import pathlib

    numbers = [1, 2]
    print(numbers, 'é')  # [1, 2] é
    print('two\\nlines')
    # two
    # lines
    for number in numbers:
        print(number + 1)
    # 2
    # 3
    pathlib.Path('text.txt').write_text('blue\\n')

- an item

  .. code-block:: console

      $ cat \\
          text.txt
      blue
      $ wc -c text.txt
      5 text.txt
      $ make lint
      $ pip install something

.. code-block:: python

    print(sum(numbers))  # 3

.. code-block:: text
   :caption: own.txt

    a line

.. code-block:: console

    $ head own.txt
    a line
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runner():
    return commands.Runner(lambda word: word)


def run(text, runner):
    pages.run_page('page.rst', text, runner)


def test_a_page_that_is_right(runner):
    assert pages.find_faults(PAGE) == []
    run(PAGE, runner)


@pytest.mark.parametrize(
    ('right', 'wrong', 'message'),
    [
        ('# [1, 2] é', '# [1, 3] é', r"page.rst:13: prints \['\[1, 2\] é'\]"),
        ('  # [1, 2] é', '', 'page.rst:13: prints .* says \\[\\]'),
        ('    # lines\n', '', 'page.rst:14: prints'),
        ('    # 3\n    pathlib', '    pathlib', 'page.rst:17: prints'),
        ('# 3\n', '# 4\n', 'page.rst:37: prints'),
        ('sum(numbers)', 'sum(number)', 'page.rst:37: TypeError'),
        ('sum(numbers)', 'sum(numbers', 'page.rst:3[67]: '),
        ('      blue\n', '      green\n', 'page.rst:27: prints\nblue\n'),
        ('5 text.txt', '6 text.txt', 'page.rst:30: prints'),
        ('wc -c text.txt', 'wc -c text', 'page.rst:30: .*\nends with 1'),
        ('make lint', 'make nothing_of_this_name', 'ends with 2'),
        ('pip install', 'conda install', "page.rst:33: 'conda'"),
        ('$ make lint', '$ python scripts/nothing.py', 'does not say how to shorten'),
        ('$ cat', 'cat', 'page.rst:27: a console block begins'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(runner, right, wrong, message):
    assert PAGE.count(right) == 1 or right == '# 3\n'
    with pytest.raises(pages.PageError, match=message):
        run(wrong.join(PAGE.rsplit(right, 1)), runner)


@pytest.mark.parametrize(
    ('right', 'wrong', 'fault'),
    [
        ('a: format', '$ python script.py', '6: .* is code'),
        ('a: format', 'import this', '6: .* is code'),
        ('a: format', '>>> 1', '6: .* is code'),
        ('.. code-block:: console', '.. code-block:: text', '27: .* is code'),
        ('.. code-block:: console', '.. code-block:: bash', '27: a code-block is one of'),
        ('Text::', '>>> 1 + 1\n\nText', '4: put this'),
    ],
)
def test_code_elsewhere_is_found(right, wrong, fault):
    faults = pages.find_faults(PAGE.replace(right, wrong))
    assert any(pages.re.match(fault, each) for each in faults), faults


def test_numbers_of_commands_may_differ_a_little():
    page = '.. code-block:: console\n\n    $ cat it\n    [0.25 1.]  2 words 3e-05 [0.12345 0.1 ,]\n'

    def check(printed):
        pages.run_page('page.rst', page, lambda text, matters: printed)

    check('[0.25003 1.] 2 words 2e-05 [0.1234  0.10001,]')
    for printed in ('[0.26 1.] 2 words 3e-05', '[0.25 1.] 3 words 3e-05', '[0.25 1.] 2 words'):
        with pytest.raises(pages.PageError):
            check(f'{printed} [0.12345 0.1 ,]')


def test_data_are_shortened(tmp_path):
    data, short = tmp_path / 'data', tmp_path / 'short'
    for folder in ('text', 'squad', 'other'):
        (data / folder).mkdir(parents=True)
    line = 'a line of the text\n'
    (data / 'text' / 'long.txt').write_text(line * 1000)
    (data / 'text' / 'train.txt').write_text(line * 1000)
    (data / 'text' / 'one.txt').write_text(line.strip())
    (data / 'other' / 'long.txt').write_text(line)
    paragraph = {'context': 'x', 'qas': [{'id': number} for number in range(9)]}
    squad = {'version': '1', 'data': [{'title': 'x', 'paragraphs': [paragraph] * 5}] * 3}
    (data / 'squad' / 'train.json').write_text(json.dumps(squad))
    real_data.shorten_data(data, short)
    text = (short / 'text' / 'long.txt').read_text()
    assert set(text.splitlines(keepends=True)) == {line}
    assert 0 < len(text) <= real_data.BYTES
    assert (short / 'text' / 'train.txt').read_text() == line * 1000
    assert (short / 'text' / 'one.txt').read_text() == line.strip()
    assert not (short / 'other').exists()
    (article,) = json.loads((short / 'squad' / 'train.json').read_text())['data']
    assert [len(each['qas']) for each in article['paragraphs']] == [4, 4]


def test_texts_keep_their_documents(tmp_path):
    text, short = tmp_path / 'text.txt', tmp_path / 'short.txt'
    text.write_text('\n\n'.join('\n'.join(f'{d} {n}' for n in range(99)) for d in range(9)) + '\n')
    places.shorten_text(text, short, documents=3, lines=2)
    assert short.read_text() == '0 0\n0 1\n\n1 0\n1 1\n\n2 0\n2 1\n'


def test_scripts_run_in_short(runner, tmp_path):
    places.make_downloads(tmp_path / 'downloaded')
    lines = ['\n'] + [f'word{number} and the red one\n' for number in range(300)]
    (tmp_path / 'text.txt').write_text(''.join(lines))
    vocabulary = 'python scripts/learn_vocab.py --input_file text.txt --output_dir vocabulary'
    train = (
        'python scripts/finetune_classifier.py --task_name MNLI --epochs 100 --gpu 0 '
        '--from_scratch --vocab_file vocabulary/vocab.txt --hparams num_layers=1,units=16,'
        'hidden_size=32,num_heads=2,max_length=32 --output_dir out'
    )
    runner(vocabulary)
    runner(train)
    assert (tmp_path / 'out' / 'best_model' / 'model.params').is_file()
    with pytest.raises(pages.PageError, match='unrecognized arguments: --colour'):
        runner(train + ' --colour blue')
    with pytest.raises(pages.PageError, match='error: .*nowhere'):
        runner(train + ' --data_dir nowhere --overwrite_output_dir')


def test_flags_are_checked_of_what_takes_long(runner):
    runner('python scripts/benchmark/compare.py training')
    with pytest.raises(pages.PageError, match='unrecognized'):
        runner('python scripts/benchmark/compare.py training --colour blue')


@pytest.mark.parametrize('family', ['bert', 'gpt', 'gpt2', 'transfo_xl'])
def test_tiny_models_stand_in_the_cache(tmp_path, monkeypatch, family):
    import model_zoo

    models = places.TinyModels(tmp_path / 'models')
    models.fill_cache(tmp_path / 'mxnet' / 'models')
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'mxnet'))
    entry = next(e for e in model_zoo.pretrained.list_pretrained() if e.family == family)
    block, vocab = model_zoo.get_model(entry.model, dataset_name=entry.dataset)
    assert len(vocab) == block.config.vocab_size < 3000
