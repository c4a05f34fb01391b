"""The classification task that a command's flags choose, one of the table or the user's own."""

from ..errors import InputError, UnknownNameError
from ..tasks.classification import custom_task, get_task, infer_labels, list_tasks
from ..tasks.tables import find_splits, is_table
from .arguments import check_files
from .labels import labels_of_folder

__all__ = ['add_custom_task_arguments', 'check_task_choice', 'make_task']

_SEGMENTS = ('train', 'dev', 'test')
_CUSTOM = ('text_columns', 'label_column', 'labels', 'header', 'regression', 'dev_split')


def add_custom_task_arguments(parser, segments=_SEGMENTS):
    """Add the flags of ``--task_name custom``.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
    segments : sequence of str
        Whose files there are flags for.
    """
    add = parser.add_argument
    kinds = 'of a custom task: TSV, .csv or .jsonl in UTF-8, or a folder that datasets has saved'
    for segment in segments:
        add(f'--{segment}_file', help=kinds if segment == segments[0] else 'likewise')
    if 'train' in segments:
        add(
            '--dev_split', type=float, metavar='SHARE',
            help='instead of --dev_file: hold out a share of --train_file, such as 0.1, of each '
            'label the same; --seed chooses the examples',
        )  # fmt: skip
    add('--text_columns', nargs='+', help='custom task: name or number of one column, or of two')
    add('--text_column', help='custom task: the same, of one column')
    add('--text_pair_column', help='custom task: that of the second text of a pair')
    add('--label_column', help='custom task: name or number of the column; numbers begin at 0')
    add('--labels', nargs='+', help="of a custom task; default: the training file's, sorted")
    add('--header', action='store_true', help='files with numbered columns have a first line')
    add('--regression', action='store_true', help='custom task: the labels are numbers')


def check_task_choice(args, trains):
    """Raise InputError, naming the flag, if the flags of the task contradict each other.

    Makes ``text_columns`` of the flags for one column, and files of a folder's splits.

    Parameters
    ----------
    args : argparse.Namespace
        With ``task_name``.
    trains : bool
        Whether a training set is needed.
    """
    _join_columns(args)
    files = [f'{segment}_file' for segment in _SEGMENTS if hasattr(args, f'{segment}_file')]
    if args.task_name != 'custom':
        given = [name for name in (*files, *_CUSTOM) if getattr(args, name, None)]
        if given:
            raise InputError(f'--{given[0]} goes with --task_name custom, not {args.task_name}')
        return
    _take_splits(args, files)
    if not args.text_columns:
        raise InputError('--task_name custom needs --text_columns')
    if trains and not (args.train_file and (args.dev_file or args.dev_split is not None)):
        raise InputError(
            '--task_name custom needs --train_file and --dev_file, or --dev_split, for training'
        )
    if (getattr(args, 'train_file', None) or args.dev_file) and not args.label_column:
        raise InputError('--train_file and --dev_file need --label_column, its name or number')


def _join_columns(args):
    """Make ``text_columns`` of the two flags that name a column each."""
    columns = [args.text_column, args.text_pair_column]
    del args.text_column, args.text_pair_column
    if columns == [None, None]:
        return
    if args.text_columns:
        raise InputError('--text_columns and --text_column both name the texts: give one')
    if columns[0] is None:
        raise InputError('--text_pair_column needs --text_column')
    args.text_columns = [column for column in columns if column is not None]


def _take_splits(args, files):
    """Replace a folder that has splits by theirs; that of ``--train_file`` gives all sets."""
    if 'train_file' in files:
        splits = find_splits(args.train_file or '')
        if args.dev_split is None:
            args.dev_file = args.dev_file or splits.get('dev')
        args.test_file = args.test_file or splits.get('test')
    for name in files:
        path, segment = getattr(args, name), name[: -len('_file')]
        splits = find_splits(path or '')
        if splits and segment not in splits:
            raise InputError(f'--{name} {path!r} has no such split; it has {", ".join(splits)}')
        setattr(args, name, splits.get(segment, path))


def make_task(args, model):
    """The task; a custom one with its labels, if they are known.

    Parameters
    ----------
    args : argparse.Namespace
    model : str
        Whose folder may name the labels.

    Returns
    -------
    model_zoo.tasks.classification.Task
    """
    if args.task_name != 'custom':
        try:
            return get_task(args.task_name)
        except UnknownNameError:
            known = [*list_tasks(), 'custom']
            raise UnknownNameError.of('task', args.task_name, known) from None
    files = {segment: getattr(args, f'{segment}_file', None) for segment in _SEGMENTS}
    files = {segment: path for segment, path in files.items() if path}
    check_files(args, *(f'{segment}_file' for segment, path in files.items() if not is_table(path)))
    task = custom_task(
        args.text_columns,
        args.label_column,
        labels=args.labels or labels_of_folder(model),
        regression=args.regression,
        header=True if args.header else None,
        files=files,
        dev_split=getattr(args, 'dev_split', None),
        split_seed=args.seed,
    )
    return infer_labels(task) if 'train' in files else task
