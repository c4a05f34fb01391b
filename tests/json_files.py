"""JSON files that a test changes."""

import json
import pathlib


def change_json(path, **changes):
    """Set fields of the object in a file, if there is one; an ellipsis takes one away."""
    path = pathlib.Path(path)
    known = json.loads(path.read_text('utf-8')) if path.exists() else {}
    fields = {**known, **changes}
    kept = {name: value for name, value in fields.items() if value is not ...}
    path.write_text(json.dumps(kept), 'utf-8')
