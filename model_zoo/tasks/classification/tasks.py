"""The table of the tasks that are known by name.

A new task is a new entry of the table; readers, metrics and scripts know no task by name.

Sources: the GLUE benchmark (Wang et al. 2018) and the header lines of its TSV files; XNLI (Conneau
et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp (Tan Songbo). The labels are in the order of
GluonNLP 0.10's tasks; ``orders`` has those of pytorch-pretrained-BERT's and Google's
run_classifier.py, and of the data sets on the hub, where they differ. Which of them a trained
classifier's outputs have is decided in `model_zoo.tasks.labels`.
"""

from typing import Dict

from ...errors import UnknownNameError
from .task import Layout, Task

__all__ = ['get_task', 'list_tasks']


def _names(*segments):
    """File names of segments that are named after them."""
    return {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments}


_SEGMENTS = _names('train', 'dev', 'test')
_PAIR = ('sentence1', 'sentence2')
_BINARY = ('0', '1')
_ENTAILMENT = {
    'labels': ('not_entailment', 'entailment'),
    'orders': dict.fromkeys(('originals', 'hub'), ('entailment', 'not_entailment')),
}
_NLI = {
    'labels': ('neutral', 'entailment', 'contradiction'),
    'orders': {
        'originals': ('contradiction', 'entailment', 'neutral'),
        'hub': ('entailment', 'neutral', 'contradiction'),
    },
    'label_aliases': {'contradictory': 'contradiction'},  # so spelt in XNLI
}
_SENTIMENT = {'negative': '0', 'positive': '1'}

_TASKS = [
    Task(
        'MRPC',
        (Layout(('#1 String', '#2 String'), 'Quality'),),
        _BINARY,
        ('accuracy', 'f1'),
        label_aliases={'not_equivalent': '0', 'equivalent': '1'},
        positive='1',
        folders=('MRPC', 'mrpc'),
        files=_SEGMENTS,
        submissions={'test': 'MRPC.tsv'},
        gluonnlp_name='MRPC',
    ),
    Task(
        'QQP',
        (Layout(('question1', 'question2'), 'is_duplicate'),),
        _BINARY,
        ('accuracy', 'f1'),
        label_aliases={'not_duplicate': '0', 'duplicate': '1'},
        positive='1',
        folders=('QQP', 'qqp'),
        files=_SEGMENTS,
        submissions={'test': 'QQP.tsv'},
        gluonnlp_name='QQP',
        tolerant=True,  # some rows of GLUE's training file are cut short
    ),
    Task(
        'QNLI',
        (Layout(('question', 'sentence'), 'label'),),
        **_ENTAILMENT,
        folders=('QNLI', 'qnli'),
        files=_SEGMENTS,
        submissions={'test': 'QNLI.tsv'},
        gluonnlp_name='QNLI',
    ),
    Task(
        'RTE',
        (Layout(_PAIR, 'label'),),
        **_ENTAILMENT,
        folders=('RTE', 'rte'),
        files=_SEGMENTS,
        submissions={'test': 'RTE.tsv'},
        gluonnlp_name='RTE',
    ),
    Task(
        'STS-B',
        (Layout(_PAIR, 'score'),),
        metrics=('pearson', 'spearman'),
        regression=True,
        label_range=(0.0, 5.0),
        folders=('STS-B', 'STSB', 'sts-b'),
        files=_SEGMENTS,
        submissions={'test': 'STS-B.tsv'},
        gluonnlp_name='STS-B',
    ),
    Task(
        'CoLA',
        # train and dev: source, label, the author's mark, sentence; test: index, sentence
        (Layout(('sentence',)), Layout((3,), 1, header=False, width=4)),
        _BINARY,
        ('matthews',),
        label_aliases={'unacceptable': '0', 'acceptable': '1'},
        folders=('CoLA', 'cola'),
        files=_SEGMENTS,
        submissions={'test': 'CoLA.tsv'},
        gluonnlp_name='CoLA',
    ),
    Task(
        'MNLI',
        (Layout(_PAIR, 'gold_label'),),
        **_NLI,
        folders=('MNLI', 'mnli'),
        files=_names('train', 'dev_matched', 'dev_mismatched', 'test_matched', 'test_mismatched'),
        submissions={'test_matched': 'MNLI-m.tsv', 'test_mismatched': 'MNLI-mm.tsv'},
        gluonnlp_name='MNLI',
    ),
    Task(
        'WNLI',
        (Layout(_PAIR, 'label'),),
        _BINARY,
        label_aliases={'not_entailment': '0', 'entailment': '1'},
        folders=('WNLI', 'wnli'),
        files=_SEGMENTS,
        submissions={'test': 'WNLI.tsv'},
        gluonnlp_name='WNLI',
    ),
    Task(
        'SST',
        (Layout(('sentence',), 'label'),),
        _BINARY,
        label_aliases=_SENTIMENT,
        folders=('SST-2', 'SST', 'sst'),
        files=_SEGMENTS,
        submissions={'test': 'SST-2.tsv'},
        gluonnlp_name='SST',
    ),
    Task(
        'XNLI',
        (
            Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition, Chinese only
            Layout(_PAIR, 'gold_label', where=('language', 'zh')),  # XNLI 1.0
            Layout(('premise', 'hypo'), 'label'),  # XNLI-MT 1.0, MNLI's training part translated
        ),
        **_NLI,
        folders=('XNLI', 'xnli', 'task_data/xnli', 'XNLI-1.0', 'XNLI-MT-1.0/multinli'),
        files={
            'train': ('train.tsv', 'train.txt', 'multinli.train.zh.tsv'),
            'dev': ('dev.tsv', 'dev.txt', 'xnli.dev.tsv'),
            'test': ('test.tsv', 'test.txt', 'xnli.test.tsv'),
        },
        submissions={'test': 'XNLI.tsv'},
        gluonnlp_name='XNLI',
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    Task(
        'LCQMC',
        (
            Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition
            Layout((0, 1), 2, header=False, width=3),
            Layout((0, 1), header=False, width=2),
        ),
        _BINARY,
        folders=('LCQMC', 'lcqmc', 'task_data/lcqmc'),
        files=_SEGMENTS,
        submissions={'test': 'LCQMC.tsv'},
        gluonnlp_name=None,  # may not be redistributed
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    Task(
        'ChnSentiCorp',
        (
            Layout(('text_a',), 'label'),  # Baidu's edition
            Layout((0,), 1, header=False, width=2),
            Layout((0,), header=False, width=1),
        ),
        _BINARY,
        label_aliases=_SENTIMENT,
        folders=('ChnSentiCorp', 'chnsenticorp', 'task_data/chnsenticorp'),
        files=_SEGMENTS,
        submissions={'test': 'ChnSentiCorp.tsv'},
        gluonnlp_name='ChnSentiCorp',
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
]
_BY_NAME: Dict[str, Task] = {task.name.lower(): task for task in _TASKS}
_ALIASES = {'sst-2': 'sst', 'sst2': 'sst', 'stsb': 'sts-b'}


def list_tasks():
    """Names of the tasks, as their authors write them."""
    return [task.name for task in _TASKS]


def get_task(name):
    """The task called `name`, in whatever case; SST is also SST-2.

    Returns
    -------
    Task

    Raises
    ------
    UnknownNameError
        If there is none; the message lists all tasks.
    """
    key = name.lower()
    key = _ALIASES.get(key, key)
    if key not in _BY_NAME:
        raise UnknownNameError.of('task', name, list_tasks())
    return _BY_NAME[key]
