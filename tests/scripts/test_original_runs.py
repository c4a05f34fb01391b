"""The originals' published command lines at work, shortened, on tiny data and weights."""

import json
import pathlib
import re
import shlex
import shutil
import string

import numpy as np
import pytest
import tiny
import toy_data
from arrays import assert_equal, tensors_of
from command_flags import main_of
from json_files import cases
from script_runs import read_json, refusal, run
from test_original_commands import COMMANDS, ROOT, expand
from variant_models import MAKERS

import bert
from bert import BertForSequenceClassification, BertTokenizer
from export import export_block
from gpt import OpenAIGPTConfig, OpenAIGPTDoubleHeadsModel, OpenAIGPTTokenizer
from model_zoo.app.originals import SCRIPTS
from model_zoo.pretrained import get_entry, resolve
from model_zoo.registry import get_family
from model_zoo.tasks.classification_data import get_task
from model_zoo.tasks.pretraining.files import write_shard, write_tfrecords
from transfo_xl import TransfoXLLMHeadModel

#: length of the samples for pre-training, and masks of each
LENGTH, MASKS = 12, 2
TASKS = 'CoLA', 'SST', 'MRPC', 'STS-B', 'QQP', 'MNLI', 'RTE', 'XNLI'
NAMES = cases('original_runs')['NAMES']
WORDS = [*tiny.SPECIAL, *string.ascii_lowercase, 'what', 'colour', 'is', 'it', '.', '?']


SMALL = {'hidden_size': 8, 'num_hidden_layers': 1, 'intermediate_size': 16}


def config():
    return tiny.bert_config(len(WORDS), **SMALL, max_position_embeddings=128)


def save(block, folder, tokenizer):
    block.initialize()
    block.save_pretrained(str(folder), tokenizer)


def write_models(root):
    """A cache of weights, for MXNET_HOME."""
    folder = root / 'models'
    folder.mkdir()

    def place_of(name, dataset=None):
        return folder / get_entry(*resolve(name, dataset)).full_name

    tokenizer = BertTokenizer(tiny.write_words(root, WORDS[len(tiny.SPECIAL) :]))
    save(bert.BertForPreTraining(config()), root / 'bert', tokenizer)
    for place in {place_of(*name) for name in NAMES}:
        place.symlink_to(root / 'bert')

    roberta, tokenizer = MAKERS['roberta'](root / 'roberta')
    place = place_of('roberta_12_768_12', 'openwebtext_ccnews_stories_books_cased')
    save(roberta, place, tokenizer)

    toy_data.write_stories(root)
    tokenizer = OpenAIGPTTokenizer(root / 'vocab.json', root / 'merges.txt')
    size = {'n_embd': 8, 'n_layer': 1, 'n_head': 2}
    sizes = tiny.decoder_config(OpenAIGPTConfig, len(tokenizer), n_positions=64, **size)
    save(OpenAIGPTDoubleHeadsModel(sizes), place_of('openai-gpt'), tokenizer)

    tiny.save_gpt2(place_of('gpt2'), n_positions=48, **size)

    texts = root / 'texts'
    corpus = toy_data.make_corpus(texts)
    sizes = tiny.transfo_xl_config(len(corpus.vocab), div_val=2, n_layer=1)
    place = place_of('transfo-xl-wt103')
    save(TransfoXLLMHeadModel(sizes), place, corpus.vocab)
    shutil.copy(texts / 'test.txt', place)


def write_world(world, fixtures):
    """The data sets, and models that are given by their paths."""
    checkpoint = fixtures / 'checkpoints' / 'bert_tensorflow'
    for name in ('uncased_L-12_H-768_A-12', 'uncased_L-24_H-1024_A-16', 'chinese_L-12_H-768_A-12'):
        shutil.copytree(checkpoint, world / 'bert' / name)
    for task in map(get_task, TASKS):
        toy_data.write_task(world / 'glue' / task.folders[0], task)
    shutil.copytree(world / 'glue' / 'XNLI', world / 'xnli')
    (world / 'glue_data').symlink_to(world / 'glue')

    questions = world / 'SQUAD'
    questions.mkdir()
    toy_data.write_questions(questions)
    for name in ('train', 'dev'):
        for version in (1, 2):
            target = questions / f'{name}-v{version}{".1" if version == 1 else ".0"}.json'
            _shorten(questions / f'{name}-{version}.json', target)

    for name, data in (('SWAG', 'data'), ('RocStories', '')):
        (world / name / data).mkdir(parents=True)
    toy_data.write_situations(world / 'SWAG' / 'data')
    stories = world / 'RocStories'
    toy_data.write_stories(stories)
    for part, name in (('val', 'train'), ('test', 'eval')):
        target = stories / f'cloze_test_{part}__spring2016 - cloze_test_ALL_{part}.csv'
        (stories / f'{name}.csv').rename(target)

    here = world / 'here'  # the current folder
    (here / 'tmp').mkdir(parents=True)
    for place in ('sample_text', 'my_corpus', 'folder1/a', 'folder2/a', 'dev_folder/a'):
        place = f'{place}.txt'
        (here / place).parent.mkdir(exist_ok=True)
        shutil.copy(fixtures / 'pretraining' / 'sample_text.txt', here / place)
    (here / 'tmp' / 'input.txt').write_text('a b c ||| d e\nf g\n')
    google = BertTokenizer(checkpoint / 'vocab.txt')
    samples = toy_data.make_samples(16, 0, 20, LENGTH, MASKS)
    write_tfrecords([str(here / 'tmp' / 'tf_examples.tfrecord')], [samples], LENGTH, MASKS)
    tokenizer = BertTokenizer(world.parent / 'root' / 'vocab.txt')
    made = world / 'generated' / 'samples'
    for place in (here / 'out', here / 'training', made / 'train', made / 'dev'):
        place.mkdir(parents=True)
        write_shard(str(place / 'part-000.npz'), samples, tokenizer.vocab)

    output = here / 'output_dir'
    output.mkdir()
    classifier = BertForSequenceClassification(config(), num_labels=2)
    answers = bert.BertForQuestionAnswering(config())
    for block, names in ((classifier, ('model_bert_MRPC_4', 'sst')), (answers, ('net',))):
        block.initialize()
        for name in names:
            block.save_parameters(str(output / f'{name}.params'))
    sizes = bert.BertConfig.from_json_file(str(checkpoint / 'bert_config.json'))
    trained = BertForSequenceClassification(sizes, num_labels=2)
    save(trained, world / 'fine' / 'tuned' / 'classifier', google)
    (world / 'saved').mkdir()
    classifier.save_parameters(str(world / 'saved' / 'ckpt.params'))
    for name in ('MRPC', 'SST'):
        export_block(classifier, str(output), f'model_bert_{name}_quantized_customize')
    export_block(answers, str(output), 'model_bert_squad_quantized_customize')


def _shorten(path, target):
    content = json.loads(path.read_text())
    content['data'][0]['paragraphs'] = content['data'][0]['paragraphs'][:12]
    target.write_text(json.dumps(content))


#: identity of a command -> why it isn't run
SKIPPED = {
    'ppb-0.6.2-23': 'asks for prompts: test_generate_gpt2.py types them',
    'gluonnlp-0.10-07': 'names eight GPUs and no data',
}
#: flags that can't be kept without a GPU or several processes -> whether they have a value
LEFT_OUT = {'--gpu': '[0-9]+', '--gpus': '.*', '--fp16': None, '--comm_backend': '.*'}
NUMBER = re.compile('[-0-9.e]+')
#: script -> what makes it short; --SQUAD and --GLUE name data that GluonNLP downloads
SHORT = cases('original_runs')['SHORT']
#: script -> flag of its output, and what it leaves there (None: on standard output)
LEFT = cases('original_runs')['LEFT']


def runnable():
    """The commands, each once: many are published several times, with other values."""
    seen = set()
    for command in COMMANDS:
        # test_zoo.py converts, and Pytorchic BERT's scripts have tests of their own
        elsewhere = re.search('/convert_|/pytorchic_bert/', command['runs_here'] or '')
        if command['accepted'] and command['id'] not in SKIPPED and not elsewhere:
            words = without_gpus(command['argv'])
            key = command['runs_here'], *(word for word in words if not NUMBER.fullmatch(word))
            if key not in seen:
                seen.add(key)
                yield pytest.param(command, id=command['id'])


@pytest.fixture(scope='module')
def world(tmp_path_factory, fixtures):
    """The folder in the place of /path/to; models by name are in ../root."""
    folder = tmp_path_factory.mktemp('originals')
    for name in ('root', 'world'):
        (folder / name).mkdir()
    write_models(folder / 'root')
    write_world(folder / 'world', fixtures)
    return folder / 'world'


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    """The current folder; the cache of weights is that of the world."""
    folder = tmp_path / 'here'
    shutil.copytree(world / 'here', folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('MXNET_HOME', str(world.parent / 'root'))
    small = config().to_dict()
    del small['vocab_size']
    # which an export takes its size of
    monkeypatch.setitem(get_family('bert').base.architectures, 'bert_12_768_12', small)
    return folder


def script_of(command):
    """Name of our script that runs a command."""
    path = pathlib.Path(command['runs_here'])
    if 'originals' not in path.parts:
        return path.stem.replace('_hvd', '')
    return SCRIPTS[f'{path.parent.name}/{path.stem}'].split()[0]


def without_gpus(words):
    """The words, but for what needs a GPU or another process."""
    words, kept = list(words), []
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition('=')
        if name in LEFT_OUT:
            value = LEFT_OUT[name]
            if value and not equals and words and re.fullmatch(value, words[0]):
                words.pop(0)
        elif word == '--dtype' and words[0] == 'float16':
            words.pop(0)
        else:
            kept.append(word)
    return kept


def short(command, world, here):
    """The arguments of a command, shortened, with the places of these tests."""
    script = script_of(command)
    words = without_gpus(expand(command['argv'], command['exports']))
    places = {
        '/tmp/': f'{here}/tmp/',
        '/path/to/output': f'{here}/output',
        '/path/to/saved': f'{world}/saved',
        '/path/to/': f'{world}/',
        'gs://some_bucket': f'{here}/bucket',
        '/datadrive/bert_data/': f'{world}/',
    }
    for old, new in places.items():
        words = [re.sub(f'(^|=){old}', rf'\g<1>{new}', word) for word in words]
    words += shlex.split(SHORT[script])
    names = {word.partition('=')[0] for word in words}
    if script == 'finetune_classifier' and '--data_dir' not in names:
        task = {'SST': 'SST-2'}.get(value_of(words, '--task_name'), value_of(words, '--task_name'))
        words += ['--data_dir', f'{world}/glue/{task}']
    if script == 'finetune_squad' and '--train_file' not in names:
        version = '2.0' if '--version_2' in names else '1.1'
        for flag, name in (('--train_file', 'train'), ('--predict_file', 'dev')):
            words += [flag, f'{world}/SQUAD/{name}-v{version}.json']
    return words


def value_of(words, *flags):
    """The last value of a flag among words, or None."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition('=')
        if name in flags:
            found = value if equals else words[place + 1]
    return found


@pytest.mark.parametrize('command', [*runnable()])
def test_command_runs(command, world, here, capsys):
    if command['runs_here'].endswith('_hvd.py'):
        pytest.importorskip('horovod.mxnet')
    words = short(command, world, here)
    script = script_of(command)
    assert run(main_of(command['runs_here'], ROOT), *words) == 0, capsys.readouterr().err
    assert_left(script, words, here, capsys.readouterr().out)


def assert_left(script, words, here, printed):
    output = value_of(words, '--output_file')
    if output is not None:
        assert pathlib.Path(output).stat().st_size > 100
    elif script in LEFT:
        flag, name = LEFT[script]
        folder = value_of(words, flag, '--output_dir') or './output_dir'
        if script == 'run_pretraining' and not {'--ckpt_dir', '--output_dir'} & set(words):
            folder = value_of(words, flag, '--output_dir') or './ckpt_dir'
        if script == 'create_pretraining_data' and '--epochs_to_generate' in words:
            name = 'epoch_0.json'  # pytorch-pretrained-bert's
        if not (pathlib.Path(folder) / name).exists():  # of a run that doesn't train
            name = 'calibration.json' if '--only_calibration' in words else 'inference.json'
        assert (pathlib.Path(folder) / name).exists(), sorted(pathlib.Path(folder).iterdir())
    else:
        assert len(printed) > 20


def google(script):
    return main_of(f'scripts/originals/google/{script}.py', ROOT)


def configuration(world):
    """Flags of Google's tiny model."""
    model = world / 'bert' / 'uncased_L-12_H-768_A-12'
    return [f'--vocab_file={model}/vocab.txt', f'--bert_config_file={model}/bert_config.json']


@pytest.fixture
def mrpc(world):
    """Flags of Google's classifier."""
    checkpoint = f'{world}/bert/uncased_L-12_H-768_A-12/bert_model.ckpt'
    words = f'--task_name=mrpc --data_dir={world}/glue/MRPC --init_checkpoint={checkpoint}'
    return [*words.split(), *configuration(world), '--output_dir=out', '--max_seq_length=12']


def test_googles_output_folder_is_gone_on_with(mrpc, here, capsys):
    """As an Estimator does: see the page on Google's BERT."""
    main = google('run_classifier')
    words = [*mrpc, '--use_tpu=True', '--tpu_name=a']
    assert 'nothing to do: give --do_train' in refusal(capsys, main, *words)
    train = [*words, '--do_train=true', '--do_eval', '--do_predict', '--num_train_epochs=1.5']
    train += ['--train_batch_size=2', '--learning_rate=1e-2']
    assert run(main, *train) == 0
    log = capsys.readouterr().err
    assert '--use_tpu has no effect: there is no TPU' in log and 'Step 6/6' in log
    predicted = pathlib.Path('out/test_results.tsv').read_text()
    assert len(predicted.splitlines()) == 8
    # again: there is nothing left to train
    pathlib.Path('out/test_results.tsv').unlink()
    assert run(main, *train) == 0
    log = capsys.readouterr().err
    assert 'resuming from' in log and 'Step 6/6' not in log
    assert pathlib.Path('out/test_results.tsv').read_text() == predicted
    # the trained model, not that of --init_checkpoint
    pathlib.Path('out/test_results.tsv').unlink()
    assert run(main, *words, '--do_predict=true') == 0
    assert pathlib.Path('out/test_results.tsv').read_text() == predicted


def pytorch(script):
    return main_of(f'scripts/originals/pytorch_pretrained_bert/{script}.py', ROOT)


WITHOUT_DEV = [
    ('run_classifier', '--task_name=mrpc --data_dir=train'),
    ('run_squad', '--train_file=SQUAD --max_query_length=4 --doc_stride=2'),
]


@pytest.mark.parametrize('script, words', WITHOUT_DEV)
def test_a_training_without_a_dev_set(world, here, capsys, script, words):
    """As in the originals: the last epoch is the result, and nothing is downloaded."""
    (here / 'train').mkdir()
    shutil.copy(world / 'glue' / 'MRPC' / 'train.tsv', here / 'train')
    words = words.replace('SQUAD', f'{world}/SQUAD/train-v1.1.json').split()
    words += '--bert_model=bert-base-uncased --do_train --output_dir=out'.split()
    words += ['--training_steps=2', '--max_seq_length=12']
    assert run(pytorch(script), *words) == 0
    assert 'there is no dev set: the last epoch is the result' in capsys.readouterr().err
    results = read_json(here / 'out')
    assert results['best']['epoch'] == len(results['training']['epochs'])
    assert (here / 'out' / 'pytorch_model.bin').exists()
    assert not (here / 'out' / 'eval_results.txt').exists()
    asks = '--do_predict' if script == 'run_squad' else '--do_eval'
    said = refusal(capsys, pytorch(script), *words, asks, '--overwrite_output_dir')
    assert re.search(r'dev set|needs --dev_file', said)


def test_the_last_epoch_is_at_the_output_folder(world, here, capsys):
    """Under the original's names, with its results; the best one is in best_model/."""
    main = pytorch('run_classifier')
    words = f'--task_name=cola --data_dir={world}/glue/CoLA --max_seq_length=12'.split()
    words += ['--bert_model=bert-base-uncased', '--output_dir=out']
    train = [*words, '--do_train', '--do_eval', '--num_train_epochs=3', '--train_batch_size=2']
    assert run(main, *train, '--learning_rate=1e-2', '--warmup_proportion=0.5') == 0
    output = here / 'out'
    last = BertForSequenceClassification.from_pretrained(output / 'pytorch_model.bin')
    want = BertForSequenceClassification(last.config, num_labels=2)
    want.load_parameters(str(output / 'model_bert_CoLA_2.params'))
    assert_equal(tensors_of(last), tensors_of(want))
    assert (output / 'vocab.txt').exists() and (output / 'config.json').exists()
    records = read_json(output)['training']['epochs']
    found = eval_results(output)
    dev = records[-1]['report']['dev']
    assert found['global_step'] == 12 and found['loss'] == records[-1]['train_loss']
    assert found['eval_accuracy'] == found['acc'] == dev['accuracy']
    assert found['eval_loss'] == dev['loss'] and found['mcc'] == dev['matthews']
    assert run(main, *words, '--do_eval', '--bert_model=out', '--output_dir=again') == 0
    again = eval_results(here / 'again')
    assert again['eval_accuracy'] == found['eval_accuracy'] and again['global_step'] == 0
    np.testing.assert_allclose(again['eval_loss'], found['eval_loss'], rtol=1e-5)


def eval_results(folder):
    """What eval_results.txt has: name -> number."""
    lines = (folder / 'eval_results.txt').read_text().splitlines()
    return {name: float(value) for name, value in (line.split(' = ') for line in lines)}


def test_more_epochs_go_on(mrpc, here, capsys):
    """In the same folder, as an Estimator does; ours with --resume."""
    main, train = google('run_classifier'), [*mrpc, '--do_train', '--train_batch_size=2']
    assert run(main, *train, '--num_train_epochs=1') == 0
    assert 'Step 4/4' in capsys.readouterr().err
    assert run(main, *train, '--num_train_epochs=2') == 0
    log = capsys.readouterr().err
    assert 'resuming with epochs 2, not 1: the learning rate follows' in log
    assert 'resuming from' in log and 'Step 8/8' in log and 'Step 4/' not in log
    ours = main_of('scripts/finetune_classifier.py', ROOT)
    words = [*mrpc, *'--batch_size=2 --lr=5e-5 --last_model=pytorch --resume --keep_state'.split()]
    assert run(ours, *words, '--epochs=3') == 0
    assert 'Step 12/12' in capsys.readouterr().err
    assert 'is of a longer training: step 12 of 4' in refusal(capsys, ours, *words, '--epochs=1')


def test_more_steps_of_a_pretraining_go_on(world, here, capsys):
    main = google('run_pretraining')
    words = (
        '--input_file=tmp/tf_examples.tfrecord --output_dir=pretrained --do_train '
        '--num_warmup_steps=2 --train_batch_size=4 --max_seq_length=12 --max_predictions_per_seq=2'
    ).split()
    for steps in (4, 6):
        capsys.readouterr()
        steps = f'--num_train_steps={steps}'
        assert run(main, *words, *configuration(world), steps) == 0
    log = capsys.readouterr().err
    assert 'resuming with training_steps 6, not 4' in log and 'resuming from' in log
    assert read_json(here / 'pretrained')['training']['steps'] == 6
