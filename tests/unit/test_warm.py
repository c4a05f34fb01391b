"""The forks of tests/warm.py end as new interpreters would."""

import warm


def test_a_number_that_an_earlier_process_had(monkeypatch):
    assert warm.run(['-c', 'pass']).returncode == 0
    before = dict.fromkeys(range(2**22), -9)  # any number may come again
    monkeypatch.setattr(warm._server(), '_codes', before)
    assert warm.run(['-c', 'raise SystemExit(3)']).returncode == 3
