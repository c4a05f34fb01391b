"""The card of a trained model: ``README.md`` in its folder, and how it is used."""

import dataclasses
import html
import json
import os
import re
import shlex
import shutil
from typing import Dict, Optional, Sequence

from ..checkpoint.sums import kept_sums
from ..util.files import atomic_write
from .report import library_versions

__all__ = ['About', 'next_command', 'write_card']

_PAIR = 'text-pair-classification'
# pipeline's task -> command, and the pipeline's argument
_USES = {
    'text-classification': ("zoo predict {folder} 'A text.'", "'A text.'"),
    _PAIR: (
        "printf 'A text.\\tAnother.\\n' | zoo predict {folder} --pairs --file -",
        "('A text.', 'Another.')",
    ),
    'question-answering': (
        "zoo ask {folder} --text 'The film was red.' 'What colour was it?'",
        "{'question': 'What colour was it?', 'context': 'The film was red.'}",
    ),
    'token-classification': ("zoo tag {folder} 'A text.'", "'A text.'"),
    'multiple-choice': (
        'zoo info {folder}', "{'text': 'It rains.', 'choices': ['I get wet.', 'I am a tree.']}"
    ),
    'sentence-similarity': (
        "zoo search {folder} --corpus texts.txt 'A query.'", "('A text.', 'Another.')"
    ),
    'fill-mask': ("zoo fill {folder} 'A [MASK] text.'", "'A [MASK] text.'"),
    'text-generation': (
        "zoo generate --model_name_or_path {folder} --prompt 'It was'", "'It was'"
    ),
}  # fmt: skip
_INFO = 'zoo info {folder}'


@dataclasses.dataclass
class About:
    """What is known of a training's model beside its figures.

    Parameters
    ----------
    use : str, optional
        A task of `model_zoo.pipeline`, or 'text-pair-classification'; None if there is no pipeline.
    base : str
        The model that the training began with.
    sizes : dict of str to int
        Data set -> number of its examples, or of what `unit` says.
    unit : str
    labels : sequence of str, optional
    """

    use: Optional[str]
    base: str
    sizes: Dict[str, int]
    unit: str = 'examples'
    labels: Optional[Sequence[str]] = None


def next_command(about, folder):
    """A command that uses the model in a folder."""
    command, _ = _USES.get(about.use, (_INFO, None))
    return command.format(folder=shlex.quote(folder))


def write_card(folder, title, about, results, metric=None, curves=None):
    """Write ``README.md``, in the Hugging Face hub's form, and the curves beside it.

    Parameters
    ----------
    folder : str
        Of the model.
    title : str
    about : About
    results : dict
        Those of results.json.
    metric : str, optional
        By which epochs were compared.
    curves : str, optional
        A picture, which is copied.
    """
    card = os.path.join(folder, 'README.md')
    with kept_sums(folder, begin=True) as written, atomic_write(card) as file:
        if curves is not None:
            shutil.copyfile(curves, os.path.join(folder, 'curves.png'))
            written.append(os.path.join(folder, 'curves.png'))
        written.append(card)
        file.write('\n'.join(_lines(title, about, results, metric, curves is not None)) + '\n')


def _lines(title, about, results, metric, has_curves):
    best, training, args = results['best'], results['training'], results['args']
    task = 'text-classification' if about.use == _PAIR else about.use
    yield from ('---', 'library_name: gluon-transformer-zoo')
    if task:
        yield f'pipeline_tag: {task}'
    yield f'tags: {json.dumps(["mxnet", "gluon"])}'
    yield from ('---', '', f'# {_plain(title)}', '')
    yield (
        f'Trained from {_plain(about.base)} with gluon-transformer-zoo: {training["steps"]} '
        f'updates in {training["seconds"]:.0f} s. These are the parameters of epoch '
        f'{best["epoch"]} of {len(training["epochs"])}'
        f'{f", the best by {metric}" if metric else ""}.'
    )
    yield from ('', '## Data', '', f'| set | {about.unit} |', '|---|---:|')
    yield from (f'| {_plain(name)} | {size:,} |' for name, size in about.sizes.items())
    if about.labels:
        yield from ('', f'Labels: {", ".join(map(_plain, about.labels))}.')
    yield from ('', '## Results', '')
    yield from _metrics(best, results.get('examination') or {})
    if has_curves:
        yield from ('', '![training loss and score](curves.png)')
    if task:
        _, argument = _USES[about.use]
        yield from (
            '', '## Use', '', '```python', 'import model_zoo', '',
            f"pipe = model_zoo.pipeline('{task}', 'best_model')  # the path of this folder",
            f'print(pipe({argument}))', '```',
        )  # fmt: skip
    yield from ('', '```console', f'$ {next_command(about, "best_model")}', '```')
    yield from ('', '## Training', '', '| flag | value |', '|---|---|')
    size = 'batch_tokens' if args.get('batch_tokens') else 'batch_size'
    names = (size, 'accumulate', 'epochs', 'lr', 'optimizer', 'wd', 'warmup_ratio', 'seed')
    yield from (f'| `--{name}` | {args[name]} |' for name in names if args.get(name) is not None)
    versions = ', '.join(f'{name} {version}' for name, version in library_versions().items())
    yield from ('', f'Versions: {versions}.')


def _metrics(best, examination):
    """A table of the first sets' figures, beside those of a guess."""
    for segment, metrics in best.items():
        if not isinstance(metrics, dict):
            continue
        guessed = (examination.get(segment) or {}).get('baseline') or {}
        guess = (examination.get(segment) or {}).get('guess')
        head = f' always "{_plain(guess)}" |' if guessed else ''
        yield from (f'| {_plain(segment)} | this model |{head}', f'|---|---:|{head and "---:|"}')
        for name, value in metrics.items():
            if isinstance(value, (int, float)) and not name.endswith('_per_second'):
                other = guessed.get(name)
                cell = '' if other is None else f'{other:.4g}'
                yield f'| {name} | {value:.4g} |' + (f' {cell} |' if guessed else '')
        yield ''


def _plain(text):
    """Text in a line of Markdown: nothing in it is markup, and no character is invisible."""
    text = ' '.join(str(text).split())
    text = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    text = re.sub(r'[\\`*\[\]#|]|(?<!\w)_|_(?!\w)', r'\\\g<0>', html.escape(text, quote=False))
    return text.replace('~', '&#126;')
