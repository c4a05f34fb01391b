"""JSON files: tables of cases, and those that a test changes."""

import json
import pathlib

CASES = pathlib.Path(__file__).parent / 'fixtures' / 'cases'


def cases(name):
    """Return the tables of ``fixtures/cases/NAME.json``, by their names."""
    return json.loads((CASES / f'{name}.json').read_text('utf-8'))


def change_json(path, **changes):
    """Set fields of the object in a file, if there is one; an ellipsis takes one away."""
    path = pathlib.Path(path)
    known = json.loads(path.read_text('utf-8')) if path.exists() else {}
    fields = {**known, **changes}
    kept = {name: value for name, value in fields.items() if value is not ...}
    path.write_text(json.dumps(kept), 'utf-8')
