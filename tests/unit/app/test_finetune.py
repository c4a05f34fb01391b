"""What the training scripts share: flags, the model they choose, the files of a run."""

import mxnet as mx
import pytest
import tiny
from json_files import cases
from mxnet.gluon import nn
from refusals import refuses

from model_zoo.app import cli, originals
from model_zoo.app.arguments import add_settings
from model_zoo.app.devices import find_contexts
from model_zoo.app.evaluator import Evaluator
from model_zoo.app.model_choice import ModelChoice
from model_zoo.app.report import write_eval_results
from model_zoo.tasks import settings as kinds
from model_zoo.tasks.task import Data, Task
from model_zoo.training.settings import ModelSettings, TrainingSettings
from model_zoo.training.updater import make_updater
from model_zoo.training.workers import Workers


def parse(*words, command=None):
    parser = cli.parser('A training.')
    add_settings(parser, ModelSettings)
    parser.set_defaults(model='bert_6_384_12')
    add_settings(parser, TrainingSettings)
    return originals.parse(parser, list(map(str, words)), command)


def test_flags_of_the_originals_become_ours(capsys, caplog):
    own = vars(parse())
    words = '--train_batch_size 6 --gradient_accumulation_steps 3 --fp16 --no_cuda --repeat 1'
    args = parse(*words.split(), command='finetune_lm')
    assert (
        vars(args).items() >= {**own, 'batch_size': 2, 'accumulate': 3, 'dtype': 'float16'}.items()
    )
    # rounded down, as the originals do
    args = parse('--train_batch_size', 7, '--accumulate', 3, command='finetune_lm')
    assert args.batch_size == 2 and 'batches have 2 examples, an update 6' in caplog.text
    with pytest.raises(SystemExit):
        parse('--no_cud', '--epoch_s=3', '--foo', command='finetune_lm')
    assert 'did you mean --epochs?' in capsys.readouterr().err


def test_a_folder_has_a_size(tmp_path):
    tiny.save_bert(tmp_path, 'ab')
    with refuses('model'):
        ModelChoice(parse('--bert_model', tmp_path, '--hparams', 'num_layers=1'), 'bert')


def test_the_score_is_the_mean_of_the_dev_sets():
    measured = {'one': ({'f1': 0.5, 'loss': 1.0}, 8.0), 'two': ({'f1': 1.0, 'loss': 0.0}, 4.0)}
    task = Task(TrainingSettings())
    task.metric, task.is_labelled = 'f1', lambda rows: True
    evaluator = Evaluator(task, None, dict.fromkeys(measured, Data((), (), None)))
    evaluator.scores = lambda name, guard: measured[name]
    score, report = evaluator.evaluate(segments=measured)
    assert score == 0.75
    assert report['two'] == {'f1': 1.0, 'loss': 0.0, 'samples_per_second': 4.0}
    assert evaluator.evaluate(segments=[]) == (0.0, {})


RESULTS = cases('report')['eval_results']


@pytest.mark.parametrize('case', RESULTS)
def test_eval_results_have_the_originals_names(case, tmp_path):
    folder = tmp_path / 'out'
    folder.mkdir()
    report, lines = RESULTS[case]
    write_eval_results(f'{folder}/', report, {'step': 7, 'train_loss': 0.125})
    found = (folder / 'eval_results.txt').read_text('utf-8').replace(' = ', '=').split()
    assert found == sorted([*lines.split(), 'global_step=7', 'loss=0.125'])
    if 'dev_mismatched' in report:  # the other is beside the folder
        assert 'acc = 0.25\n' in (tmp_path / 'out-MM' / 'eval_results.txt').read_text('utf-8')


@pytest.mark.parametrize(('gpus', 'gpu'), [('0,1', None), ('0,0', None), ('0,1', 0)])
def test_gpus_that_are_none(gpus, gpu):
    with refuses('gpus'):
        find_contexts(gpus, Workers(), gpu)


def test_the_cpu_and_the_workers_of_a_machine(monkeypatch):
    assert find_contexts(None, Workers()) == find_contexts('', Workers()) == [mx.cpu()]
    second = Workers()
    second.rank, second.size, second.local_rank = 1, 2, 1
    monkeypatch.setattr('model_zoo.util.arrays.check_gpu', lambda number, given: None)
    assert find_contexts('4,5', Workers()) == [mx.gpu(4), mx.gpu(5)]
    assert find_contexts('4,5', second) == [mx.gpu(5)]
    with refuses('gpus'):
        find_contexts('4', second)


def test_clipping_each_parameter_needs_an_optimizer_that_does():
    block = nn.Dense(1, in_units=2)
    block.initialize()
    options = {'options': {'max_grad_norm': 1.0}}
    updater = make_updater(parse(), block, None, None, **options)
    assert updater.trainer._optimizer.max_grad_norm == 1.0
    with refuses('optimizer'):
        make_updater(parse('--optimizer', 'sgd'), block, None, None, **options)


def test_the_loss_scale_of_a_flag(caplog):
    block = nn.Dense(1, in_units=2)
    block.initialize()

    def scale(**settings):
        return make_updater(TrainingSettings(**settings), block, None).loss_scale

    assert scale(dtype='float16') == scale(dtype='float16', loss_scale=0)
    fixed = scale(dtype='float16', loss_scale=128)
    assert (fixed.value, fixed.dynamic) == (128, False)
    assert scale() is None and not caplog.text
    assert scale(loss_scale=128) is None
    assert '`loss_scale` has an effect with' in caplog.text
    with refuses('loss_scale'):
        scale(loss_scale=-1)


NAMES = ['model', 'train_file', 'dev_file', 'max_length', 'dev_split', 'batch_size', 'lr']
NAMES += ['epochs', 'output_dir']


OLDER = [
    ('Classification', {'bert_model': 'model', 'max_len': 'max_length'}),
    ('Squad', {'predict_file': 'dev_file', 'max_seq_length': 'max_length'}),
    ('Tagging', {'bert_model': 'model'}),
    ('Sentence', {'max_len': 'max_length'}),
    ('Story', {'gpt_model': 'model', 'train_dataset': 'train_file'}),
    ('MaskedLM', {'train_corpus': 'train_file', 'dev_corpus': 'dev_file'}),
    ('LanguageModel', {'eval_file': 'dev_file', 'block_size': 'max_length'}),
]


@pytest.mark.parametrize('cls, others', OLDER)
def test_tasks_share_names_and_take_older_ones(cls, others, tmp_path):
    cls = getattr(kinds, f'{cls}Settings')
    assert {*NAMES} <= cls.defaults().keys() or cls is kinds.StorySettings
    values = {'model': 'a', 'max_length': 7, 'epochs': 2, 'lr': 0.5}
    values.update(train_file=str(tmp_path / 'x'), dev_file=str(tmp_path / 'x'))
    (tmp_path / 'x').write_text('')
    given = {old: values[new] for old, new in others.items()}
    settings = cls(**given)
    assert vars(settings).items() >= {new: values[new] for new in others.values()}.items()
    assert vars(settings.copy(**given)) == vars(settings)
    parser = cli.parser('A training.')
    add_settings(parser, cls)
    args = parser.parse_args([f'--{name}={value}' for name, value in given.items()])
    assert vars(args).items() >= {new: values[new] for new in others.values()}.items()
    assert not any(f'--{old} ' in parser.format_help(everything=True) for old in others)
    (tmp_path / 'old.yaml').write_text(''.join(f'{k}: {v}\n' for k, v in given.items()))
    assert vars(parser.parse_args(['--config', str(tmp_path / 'old.yaml')])) == vars(args)
    old, new = next(iter(others.items()))
    with refuses(new):
        cls(**{old: values[new], new: values[new]})
