"""Study the attention heads of BERT, OpenAI GPT or GPT-2, and prune the unimportant ones.

    python bertology.py --model output_dir/best_model --task_name MRPC --try_masking
    python bertology.py --model gpt2 --dev_file valid.txt --try_masking

The flags are the same as in pytorch-pretrained-bert's bertology.py. The data is the dev set of a
task of finetune_classifier.py, also a custom one, for a BERT that was trained on it; for OpenAI
GPT and GPT-2 it is a text.

``--output_dir`` receives the log and ``results.json`` with the entropy of each head's attention,
its importance (how much the loss depends on its output) and its rank.

``--try_masking`` turns heads off, the least important ones first, until the metric falls below
``--masking_threshold`` of its first value. (A language model's metric is 1 / perplexity.) Then it
prunes them, measures metric, speed and size before and after, and writes ``pruned_model/`` for
``from_pretrained`` and for all scripts.
"""

from model_zoo.app import cli, originals
from model_zoo.app.arguments import add_fields, add_settings, check_at_least_one
from model_zoo.errors import InputError
from model_zoo.tasks.settings import ClassificationSettings
from model_zoo.training.settings import DeviceSettings, ModelSettings

METRICS = {'acc': 'accuracy', 'mcc': 'matthews', 'spearmanr': 'spearman'}  # the original's names


def main(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    group = parser.add_argument_group('data')
    add = group.add_argument
    add('--task_name', help='of BERT: a known task, such as MRPC (the default), or custom')
    add_fields(group, ClassificationSettings, 'data_dir')
    files = 'custom task: TSV, .csv, .jsonl, .parquet or a folder of datasets; GPT, GPT-2: a text'
    add('--dev_file', help=files)
    columns = 'text_columns', 'text_column', 'text_pair_column', 'label_column'
    add_fields(group, ClassificationSettings, *columns, 'labels', 'header', 'regression')
    add('--metric_name', help="metric for masking; default: the task's first metric")
    text = 'in tokens, including special tokens; default: 128, or fewer if the model reads fewer'
    add('--max_length', type=int, help=text)
    parser.add_aliases('dev_file', 'eval_file')
    parser.add_aliases('max_length', 'max_len', 'max_seq_length', 'block_size')
    add('--data_subset', type=int, help='use only the first examples, or blocks of the text')
    add('--batch_size', type=int, default=8, help='does not affect the results')
    add = parser.add_argument_group('analysis').add_argument
    text = "don't scale the importances of each layer to a Euclidean norm of 1"
    add('--dont_normalize_importance_by_layer', action='store_true', help=text)
    text = "don't scale all importances to the range from 0 to 1"
    add('--dont_normalize_global_importance', action='store_true', help=text)
    add('--try_masking', action='store_true', help='turn heads off, and prune them')
    add('--masking_threshold', type=float, default=0.9, help='share of the metric that must remain')
    add('--masking_amount', type=float, default=0.1, help='share of the heads to turn off per step')
    add_fields(parser, ClassificationSettings, 'encoding')
    add_settings(parser, ModelSettings)
    add_fields(parser, DeviceSettings, 'gpu')
    parser.add_argument('--seed', type=int, default=42, help='seed of missing parameters')
    parser.add_argument('--output_dir', default='./output_dir')
    parser.set_defaults(dtype='float32')
    args = originals.parse(parser, argv, 'bertology')
    if args.data_subset == -1:  # the original's value for all
        args.data_subset = None
    args.metric_name = METRICS.get(args.metric_name, args.metric_name)
    check_at_least_one(args, 'data_subset', 'batch_size')
    for name in ('masking_threshold', 'masking_amount'):
        if not 0 < vars(args)[name] < 1:
            raise InputError(f'must be between 0 and 1, not {vars(args)[name]}', field=name)
    if args.model is None:
        raise InputError('`model` is missing: a name or a folder')
    from model_zoo.app.head_study import study_heads

    study_heads(args)


if __name__ == '__main__':
    cli.run_script(main)
