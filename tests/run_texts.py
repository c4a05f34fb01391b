"""All that a training says and writes as text, to compare it with earlier ones.

``python tests/run_texts.py [CASE ...]`` writes ``fixtures/run_texts.json`` anew, or some of its
cases, after an intended change.
"""

import html
import json
import os
import pathlib
import re
import sys
import tempfile

import pytest

FIXTURE = pathlib.Path(__file__).parent / 'fixtures' / 'run_texts.json'
#: differs between machines and runs
_TIMES = re.compile(r'\b(\d+:\d\d:\d\d |ETA \S+|[\d.,]+ (\w+(/s| per second)|s\b|MB))')
_UNSTABLE = re.compile(r'(warning: |next: |Versions: |\$ |.*\bpython \d|.*\d of \d+ \w+,$)')
_THRESHOLD = re.compile(r'(thresh(?:old)?"?(?::| \|)? )-?[\d.]+')
_NUMBER = re.compile(r'(?<!lr=)(?<!\d)-?\d+\.\d+(?:e[-+]\d+)?|\d+e-\d+|\bnan\b')


def _rows(results):
    """The lines of results.json, without times, versions and checksums."""

    def stable(value):
        if isinstance(value, dict):
            changing = ['versions', 'data', 'args', 'log']
            changing += ['train_loss'] if value.get('epoch', 1) > 1 else []
            return {
                key: stable(each)
                for key, each in value.items()
                if key not in changing and not re.search('second|minutes|time', key)
            }
        return [stable(each) for each in value] if isinstance(value, list) else value

    flat = json.dumps(stable(results), indent=0, sort_keys=True, ensure_ascii=False)
    return flat.splitlines()


def texts_of(folder, data, log):
    """Return the lines of a finished run's log, results, card, report and predictions."""
    results = json.loads((folder / 'results.json').read_text('utf-8'))
    page = (folder / 'report.html').read_text('utf-8').partition('<script')[0]
    page = re.sub(r'<style.*?</style>', '', page, flags=re.DOTALL)
    lines = [
        *(folder / log).read_text('utf-8').splitlines(),
        *_rows(results),
        *(folder / 'best_model' / 'README.md').read_text('utf-8').splitlines(),
        *html.unescape(re.sub('<[^>]*>', ' ', page)).splitlines(),
    ]
    for name in results.get('predictions', ()):
        lines += (folder / name).read_text('utf-8').splitlines()[:5]
    found = []
    for line in lines:
        line = line.replace(str(folder), 'OUT').replace(str(data), 'DATA')
        if 'Epoch 1 ' not in line:  # training multiplies what processors round differently
            line = re.sub(r'\b(loss|grad_norm)=\S+', '', line)
        line = ' '.join(_TIMES.sub('', line).split())
        if line and not _UNSTABLE.match(line):
            found.append(line)
    return found


def assert_alike(found, expected):
    """Assert that lines are equal but for small differences of numbers with a point.

    They are smallest in the first epoch: later ones show more of the processor's rounding. Where
    the threshold of a reader lies shows even more of it.
    """
    found, expected = (
        [_THRESHOLD.sub(r'\1', line) for line in lines] for lines in (found, expected)
    )
    assert [_NUMBER.sub('#', line) for line in found] == [
        _NUMBER.sub('#', line) for line in expected
    ]
    for line, other in zip(found, expected):
        numbers = [[float(each) for each in _NUMBER.findall(text)] for text in (line, other)]
        near = {'rel': 0.01, 'abs': 2e-3} if 'Epoch 1 ' in other else {'rel': 0.1, 'abs': 0.03}
        assert numbers[0] == pytest.approx(numbers[1], **near, nan_ok=True), other


def main():
    os.environ.setdefault('ZOO_OPERATORS', 'off')  # as in the tests
    sys.path[:0] = [str(FIXTURE.parents[1] / 'scripts'), str(FIXTURE.parents[2] / 'scripts')]
    import model_zoo  # noqa: F401, I001  before MXNet
    from contract import CASES, Toy

    texts = json.loads(FIXTURE.read_text('utf-8')) if sys.argv[1:] else {}
    for name in sys.argv[1:] or CASES:
        toy = Toy(name, pathlib.Path(tempfile.mkdtemp()))
        texts[name] = texts_of(toy.trained, toy.data, toy.case.log)
    FIXTURE.write_text(json.dumps(texts, indent=0, ensure_ascii=False) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
