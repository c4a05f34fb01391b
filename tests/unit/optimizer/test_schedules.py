"""The learning-rate schedules, against the values of pytorch-pretrained-bert's."""

import json
import logging

import pytest

from model_zoo.optimizer import (
    SCHEDULES,
    ConstantLR,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupLinearSchedule,
    finetune_schedule,
    get_schedule,
)

LOGGER = 'model_zoo.optimizer.schedules'


def test_every_step_equals_the_originals(fixtures):
    cases = json.loads((fixtures / 'optimizer_expected.json').read_text())['schedules']
    assert {case['name'] for case in cases} == set(SCHEDULES)
    for case in cases:
        schedule = SCHEDULES[case['name']](base_lr=3e-5, **case['arguments'])
        late = SCHEDULES[case['name']](base_lr=3e-5, first_step=1, **case['arguments'])
        for step, factor in enumerate(case['factors']):
            where = (case['name'], case['arguments'], step)
            assert schedule.get_lr(step) == pytest.approx(factor, rel=1e-14, abs=1e-16), where
            # MXNet's first update is number 1
            expected = pytest.approx(3e-5 * factor, rel=1e-14, abs=1e-21)
            assert schedule(step + 1) == expected, where
            if step > 0:
                assert late(step) == expected, where
        assert schedule(0) == schedule(1)  # before the first update


def test_past_the_end_warns_once_and_goes_on(caplog):
    with caplog.at_level(logging.WARNING, LOGGER):
        schedule = WarmupLinearSchedule(0.1, 10)
        assert schedule.get_lr(10) == 0 and not caplog.records
        assert [schedule.get_lr(step) for step in (11, 12, 20)] == [0, 0, 0]
        assert len(caplog.records) == 1
        assert 't_total=10' in caplog.text and 'WarmupLinearSchedule' in caplog.text
        caplog.clear()
        WarmupCosineSchedule(0.1, 10).get_lr(11, nowarn=True)
        WarmupConstantSchedule(0.1, 10).get_lr(11)
        ConstantLR(0.1, 10).get_lr(11)
        assert not caplog.records


def test_get_schedule():
    assert type(get_schedule(None, 1e-3)) is ConstantLR
    schedule = get_schedule('warmup_cosine', 1e-3, 0.1, 10, cycles=2.0, first_step=1)
    assert type(schedule) is WarmupCosineSchedule
    assert (schedule.base_lr, schedule.warmup, schedule.t_total) == (1e-3, 0.1, 10)
    assert (schedule.cycles, schedule.first_step) == (2.0, 1)


@pytest.mark.parametrize('num_steps,ratio', [(100, 0.1), (37, 0.1), (343, 0.3), (5, 0.1), (9, 0)])
@pytest.mark.parametrize('first_step', [0, 1])
def test_finetune_schedule_equals_gluonnlp_formula(num_steps, ratio, first_step):
    """The formula of GluonNLP's finetune_classifier.py (from 0) and finetune_squad.py (from 1)."""
    schedule = finetune_schedule(2e-5, num_steps, ratio, first_step)
    warmup = int(num_steps * ratio)
    for update in range(1, num_steps + 1):
        step = update - 1 + first_step
        if step < warmup:
            expected = 2e-5 * step / warmup
        else:
            expected = 2e-5 - 2e-5 * (step - warmup) / (num_steps - warmup)
        assert schedule(update) == pytest.approx(expected, rel=1e-12, abs=1e-19), update
