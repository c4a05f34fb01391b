"""--batch_tokens in all training scripts: unequal batches, resumed, shared by workers, weighted."""

from contract import killed
from script_runs import run, without
from test_contract import assert_ended_equal

SIZES = '--batch_size', '--batch-size', '--train_batch_size'


def by_tokens(argv, tokens, *more):
    """A command line with ``--batch_tokens`` instead of a batch size."""
    return [*without(argv, *SIZES), '--batch_tokens', str(tokens), *map(str, more)]


def test_killed_and_resumed_is_as_unbroken(toys, tmp_path):
    toy = toys('finetune_tagging')
    tokens, more = 400, ['--training_steps', 5, '--ckpt_interval', 2]
    whole, broken = (
        by_tokens(toy.case.again(toy.data, tmp_path / each), tokens, *more)
        for each in ('whole', 'broken')
    )
    assert run(toy.script, *whole) == 0
    with killed(toy.case.accumulate * 4):
        run(toy.script, *broken)
    assert run(toy.script, *broken, '--resume') == 0
    assert_ended_equal(tmp_path / 'broken', tmp_path / 'whole')
