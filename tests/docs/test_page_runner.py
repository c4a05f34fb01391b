"""The runner of the pages: a made-up page that is right, and ways to spoil it."""

import commands
import pages
import places
import pytest

PAGE = """Title
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
"""


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
    ('right', 'wrong', 'line'),
    [
        ('# [1, 2] é', '# [1, 3] é', 13),
        ('  # [1, 2] é', '', 13),
        ('    # lines\n', '', 14),
        ('    # 3\n    pathlib', '    pathlib', 17),
        ('# 3\n', '# 4\n', 37),
        ('sum(numbers)', 'sum(number)', 37),
        ('sum(numbers)', 'sum(numbers', 37),
        ('      blue\n', '      green\n', 27),
        ('5 text.txt', '6 text.txt', 30),
        ('wc -c text.txt', 'wc -c text', 30),
        ('make lint', 'make nothing_of_this_name', 32),
        ('pip install', 'conda install', 33),
        ('$ make lint', '$ python scripts/nothing.py', 32),
        ('$ cat', 'cat', 27),
    ],
)
def test_what_is_wrong_is_found(runner, right, wrong, line):
    with pytest.raises(pages.PageError) as caught:
        run(wrong.join(PAGE.rsplit(right, 1)), runner)
    assert f'page.rst:{line}: ' in str(caught.value)


@pytest.mark.parametrize(
    ('right', 'wrong', 'line'),
    [
        ('a: format', '$ python script.py', 6),
        ('a: format', 'import this', 6),
        ('a: format', '>>> 1', 6),
        ('.. code-block:: console', '.. code-block:: bash', 27),
        ('Text::', '>>> 1 + 1\n\nText', 4),
    ],
)
def test_code_elsewhere_is_found(right, wrong, line):
    assert pages.find_faults(PAGE.replace(right, wrong))[0].startswith(f'{line}: ')


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
    assert (tmp_path / 'out' / 'best_model' / 'model.safetensors').is_file()
    for wrong in ('--colour blue', '--data_dir nowhere --overwrite_output_dir'):
        with pytest.raises(pages.PageError):
            runner(f'{train} {wrong}')
    with pytest.raises(pages.PageError):  # whose flags alone are checked
        runner('python scripts/serve.py --colour blue')
