"""What mypy and editors know of the calls that users type."""

import re

import pytest
from script_runs import ROOT, run_python

CALLS = ROOT / 'tests' / 'fixtures' / 'typed_calls.py'
FLAGS = '--follow-imports=silent --ignore-missing-imports --no-error-summary --hide-error-codes'


@pytest.mark.slow
def test_types_of_calls(tmp_path):
    pytest.importorskip('mypy')
    done = run_python('-m', 'mypy', *FLAGS.split(), '--cache-dir', tmp_path, CALLS, cwd=ROOT)
    found = {}
    for line in done.stdout.splitlines():
        number, message = re.fullmatch(r'.*?:(\d+): (.*)', line).groups()
        told = re.sub(r'note: Revealed type is "(.*)"', r'\1', message)
        told = re.sub(r'\w+\.(?=\w)', '', told)
        # NumPy's versions tell more or less of an array's type
        found[int(number)] = told.replace('tuple[Any, ...], dtype[Any]', 'Any, Any')
    for number, line in enumerate(CALLS.read_text('utf-8').splitlines(), 1):
        expected = line.partition('  # ')[2]
        if expected.startswith('error: '):
            assert found[number].startswith('error: ') and expected[7:] in found[number]
        else:
            assert found.get(number, '') == expected, line
