"""The classification task that a command's flags choose, one of the table or the user's own."""

__all__ = ['add_custom_task_arguments']

_SEGMENTS = ('train', 'dev', 'test')


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
            help='instead of --dev_file: hold out this share of --train_file, such as 0.1, '
            'stratified by label; --seed chooses the examples',
        )  # fmt: skip
    add('--text_columns', nargs='+', help='custom task: name or number of one column, or of two')
    add('--text_column', help='custom task: the same, of one column')
    add('--text_pair_column', help='custom task: that of the second text of a pair')
    add('--label_column', help='custom task: name or number of the column; numbers begin at 0')
    add('--labels', nargs='+', help="names of the model's outputs in their order, also a,b,c; "
        "default: the model's; of a new custom task the training file's, sorted")  # fmt: skip
    add('--header', action='store_true', help='files with numbered columns have a first line')
    add('--regression', action='store_true', help='custom task: the labels are numbers')
