"""scripts/benchmark/peer_training.py: without dropout the peer's losses are ours."""


import pytest
from contract import CASES, killed
from script_runs import SCRIPTS, load_script, read_json, refusal, run

torch = pytest.importorskip('torch')
pytest.importorskip('transformers')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore::UserWarning')]

SAME = ['--epochs', '2', '--optimizer', 'openaiadam', '--lr', '1e-3', '--log_interval', '2']
NAMES = ('finetune_classifier', 'finetune_squad', 'finetune_tagging', 'finetune_swag',
         'train_lm gpt2', 'train_lm transfo_xl')  # fmt: skip


@pytest.fixture
def arguments(tmp_path):
    """``arguments(name, output, *more)``: those of a case's training, without dropout."""

    def make(name, output, *more):
        case, data = CASES[name], tmp_path / 'data'
        if not data.exists():
            data.mkdir()
            case.write(data)
        # the classifier's other training has loggers
        made = case.again if name == 'finetune_classifier' else case.train
        argv = [*made(data, tmp_path / output), *SAME, *more]
        argv.insert(argv.index('--hparams') + 1, 'dropout=0')
        return argv

    return make


def peer(script, *argv):
    return run(load_script('peer_training', SCRIPTS / 'benchmark'), script, *argv)


def training_of(folder):
    return read_json(folder)['training']


def assert_same_training(ours, theirs, tolerance):
    ours, theirs = training_of(ours), training_of(theirs)
    assert ours['log'][-1]['loss'] != pytest.approx(ours['log'][0]['loss'], rel=1e-4)
    for one, other in zip(ours['log'], theirs['log'], strict=True):
        assert one['loss'] == pytest.approx(other['loss'], rel=tolerance)
        assert one['lr'] == other['lr']
    for one, other in zip(ours['epochs'], theirs['epochs'], strict=True):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=tolerance)
        if tolerance < 0.01:
            assert one['score'] == pytest.approx(other['score'], rel=0.05, abs=2e-2)


@pytest.mark.parametrize('name', NAMES)
def test_the_same_losses(name, arguments, tmp_path):
    script = name.split()[0]
    assert run(load_script(script), *arguments(name, 'ours')) == 0
    assert peer(script, *arguments(name, 'theirs')) == 0
    # transformers gives padding a probability to be an answer's end, and we don't
    tolerance = 0.15 if script == 'finetune_squad' else 1e-3
    assert_same_training(tmp_path / 'ours', tmp_path / 'theirs', tolerance)


@pytest.mark.parametrize('optimizer', ['bertadam', 'openaiadam'])
def test_a_killed_one_goes_on(optimizer, arguments, tmp_path):
    script, more = 'finetune_classifier', ['--ckpt_interval', '5', '--optimizer', optimizer]
    assert peer(script, *arguments(script, 'whole', *more)) == 0
    argv = arguments(script, 'cut', *more)
    with killed(40, torch.Tensor):
        peer(script, *argv)
    assert peer(script, *argv, '--resume') == 0
    whole, cut = training_of(tmp_path / 'whole'), training_of(tmp_path / 'cut')
    for one, other in zip(whole['epochs'], cut['epochs'], strict=True):
        assert one['train_loss'] == pytest.approx(other['train_loss'], rel=1e-6)
        assert one['score'] == other['score']


def test_what_a_peer_cannot_train(arguments, capsys):
    script = load_script('peer_training', SCRIPTS / 'benchmark')
    assert "'predict' is not a training script" in refusal(capsys, script, 'predict')
    argv = arguments('finetune_classifier', 'out', '--accumulate', '2')
    said = refusal(capsys, script, 'finetune_classifier', *argv)
    assert 'without --as_bertadam and --accumulate' in said
