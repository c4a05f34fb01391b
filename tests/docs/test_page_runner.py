"""The runner of the pages: a made-up page that is right, and ways to spoil it."""

import commands
import pages
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
        ('  # [1, 2] é', '', 13),
        ('# 3\n', '# 4\n', 37),
        ('sum(numbers)', 'sum(number)', 37),
        ('      blue\n', '      green\n', 27),
        ('5 text.txt', '6 text.txt', 30),
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
        ('a: format', 'import this', 6),
        ('.. code-block:: console', '.. code-block:: bash', 27),
        ('Text::', '>>> 1 + 1\n\nText', 4),
    ],
)
def test_code_elsewhere_is_found(right, wrong, line):
    assert pages.find_faults(PAGE.replace(right, wrong))[0].startswith(f'{line}: ')
