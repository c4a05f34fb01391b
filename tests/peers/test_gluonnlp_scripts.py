"""GluonNLP 0.10's own scripts and tests run on our blocks as on its own.

``ZOO_GLUONNLP`` names a checkout of GluonNLP 0.10, which is no part of this project.
"""

import json
import os
import random
import re
import shutil

import gluonnlp as nlp
import gluonnlp_script
import pytest
from gluonnlp.vocab import BERTVocab
from json_files import cases
from script_runs import ROOT, run_python

pytestmark = pytest.mark.peers
CHECKOUT = 'ZOO_GLUONNLP'

WORDS = 'the a cat dog sat ran on mat . , fast slow red blue was it who what where ?'.split()
#: what a run tells of its results: losses, scores, vectors
RESULT = re.compile(
    r'(?:[Ll]oss(?:_value)?[=: ]|accuracy: ?|metrics:|f1: |mlm_loss=|nsp_loss=|acc=|embedding: ).*'
)
NUMBER = re.compile(r'-?\d+\.\d+(?:e-?\d+)?')


@pytest.fixture(scope='module')
def originals(checkout):
    """The folder of GluonNLP's scripts."""
    return checkout / 'scripts'


def sentence(length=8):
    return ' '.join(random.choices(WORDS, k=length))


def write_glue(folder, labels):
    folder.mkdir(parents=True)
    for split, count in (('train', 12), ('dev', 6), ('test', 4)):
        # RTE's rows; those of STS-B have more fields before the sentences
        fields = [] if labels else ['x'] * 6
        rows = [[str(n), *fields, sentence(), sentence()] for n in range(count)]
        if split != 'test':
            for row in rows:
                row.append(random.choice(labels) if labels else f'{random.random() * 5:.2f}')
        elif labels:  # with NumPy 2.4 the script can't write the classes of tests: none
            rows = []
        lines = ['\t'.join(row) for row in [['header'] * 4, *rows]]
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n')


def write_squad(folder):
    folder.mkdir(parents=True)
    for split, count in (('train', 8), ('dev', 4)):
        paragraphs = []
        for number in range(count):
            context = sentence(20)
            answer = context.split()[number + 2]
            question = {
                'id': f'{split}{number}',
                'question': sentence(5),
                'answers': [{'text': answer, 'answer_start': context.index(answer)}],
            }
            paragraphs.append({'context': context, 'qas': [question]})
        data = {'version': '1.1', 'data': [{'title': 'a', 'paragraphs': paragraphs}]}
        (folder / f'{split}-v1.1.json').write_text(json.dumps(data))


@pytest.fixture(scope='module')
def home(tmp_path_factory, originals):
    """A folder for ``$MXNET_HOME``: weights, vocabularies and data sets."""
    home = tmp_path_factory.mktemp('home')
    vocab = BERTVocab(nlp.data.count_tokens([*WORDS, '##s']))
    gluonnlp_script.fill_home(home, vocab)
    random.seed(1)
    write_glue(home / 'datasets' / 'glue_rte', ['entailment', 'not_entailment'])
    write_glue(home / 'datasets' / 'glue_stsb', None)
    write_squad(home / 'datasets' / 'squad')
    lines = (f'{word} X X {random.choice(["O", "B-PER", "I-PER"])}' for word in WORDS * 8)
    (home / 'tags.txt').write_text(
        ''.join(line + '\n' * (1 + (number % 7 == 6)) for number, line in enumerate(lines))
    )
    text = (sentence() + '\n' * (1 + (number % 4 == 3)) for number in range(40))
    (home / 'text.txt').write_text(''.join(text))
    return home


def run(side, script, arguments, home, folder):
    """The output of a script of theirs, run on our models or theirs."""
    folder.mkdir(exist_ok=True)
    arguments = [str(argument).replace('HOME', str(home)) for argument in arguments]
    env = {**os.environ, 'MXNET_HOME': str(home), 'OMP_NUM_THREADS': '1'}
    runner = ROOT / 'tests' / 'gluonnlp_script.py'
    done = run_python(runner, side, script, *arguments, cwd=folder, env=env)
    output = done.stdout + done.stderr
    assert done.returncode == 0, f'{side}: {output[-3000:]}'
    return output


def numbers(output):
    lines = ' '.join(RESULT.findall(output))
    lines = re.sub(r'(latency|throughput|Thoughput|samples|lr|time)\S*', '', lines)
    return list(map(float, NUMBER.findall(lines)))


#: name -> script, and its arguments
SCRIPTS = cases('gluonnlp_scripts')['SCRIPTS']


@pytest.mark.parametrize('name', SCRIPTS)
def test_losses_and_scores_are_theirs(originals, home, tmp_path, name):
    script, arguments = SCRIPTS[name]
    arguments = arguments.split() if isinstance(arguments, str) else arguments
    ours, theirs = (
        numbers(run(side, originals / script, arguments, home, tmp_path / side))
        for side in ('ours', 'theirs')
    )
    assert len(theirs) >= 4
    assert ours == pytest.approx(theirs, abs=2e-4)


def test_pretraining(originals, home, tmp_path):
    """On samples of theirs; then from a checkpoint and without pretrained weights."""
    data = tmp_path / 'data'
    data.mkdir()
    for path in (home / 'models').glob('*.vocab'):  # where their script looks for it
        shutil.copy(path, data)
    run(
        'ours',
        originals / 'bert/data/create_pretraining_data.py',
        (
            f'--input_file HOME/text.txt --output_dir {data} --max_seq_length 32 '
            '--dataset_name book_corpus_wiki_en_uncased --max_predictions_per_seq 4 '
            '--dupe_factor 2 --num_workers 1'
        ).split(),
        home,
        tmp_path,
    )
    script, arguments = (
        originals / 'bert/run_pretraining.py',
        (
            f'--data {data}/*.npz --data_eval {data}/*.npz --num_steps 4 --lr 1e-3 '
            '--total_batch_size 4 --total_batch_size_eval 4 --log_interval 1 --ckpt_dir '
            'ckpt --ckpt_interval 2 --dtype float32 --num_dataset_workers 1 '
            '--num_batch_workers 1'
        ).split(),
    )
    found = []
    for side in ('ours', 'theirs'):
        run(side, script, [*arguments, '--pretrained'], home, tmp_path / side)
        [log] = (tmp_path / side / 'ckpt').glob('*log*')
        found.append(numbers(log.read_text()))
    assert len(found[1]) > 8
    assert found[0] == pytest.approx(found[1], abs=2e-4)
    run('ours', script, [*arguments, '--start_step', 2], home, tmp_path / 'ours')
