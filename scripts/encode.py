"""Turn texts into the ids of a model's tokenizer.

    python encode.py bert_12_768_12 'What a fine day.'
    python encode.py output_dir/best_model --file reviews.txt --output ids.jsonl
    python encode.py bert_12_768_12 --files 'corpus/*.txt' --output_dir ids --output_format npz

The model is a name or a folder; no weights are read. Each line that isn't blank is a text. In an
``.npz``, ``ids`` has the ids of all texts, one after the other; text i is
``ids[offsets[i]:offsets[i + 1]]``.
"""

from model_zoo.app import cli
from model_zoo.app.arguments import add_many_files_arguments, check_at_least_one, use_parser


def parse_arguments(argv=None):
    parser = use_parser(__doc__, engine=False)
    add = parser.add_argument
    add('--dataset_name', help='data set of the weights whose vocabulary to use')
    add('--vocab_file', help="vocabulary instead of the model's")
    add('--max_length', type=int, help='maximum number of ids per text; longer texts are truncated')
    add('--no_special_tokens', action='store_true', help='leave out special tokens such as [CLS]')
    parser.add_aliases('max_length', 'max_len')
    add_many_files_arguments(parser, parser, ('npz', 'jsonl'))
    args = parser.parse_intermixed_args(argv)
    check_at_least_one(args, 'max_length')
    return args


def main(argv=None):
    args = parse_arguments(argv)
    from model_zoo.app.use import FileEncoder, write_results

    cli.setup_logging()
    model = {
        'name_or_folder': args.model,
        'dataset_name': args.dataset_name,
        'vocab_file': args.vocab_file,
    }
    encoding = {'max_length': args.max_length, 'add_special_tokens': not args.no_special_tokens}
    pairs = True if args.text_pair_column else False if args.text_column else None
    write_results(FileEncoder(model, encoding), args, pairs)


if __name__ == '__main__':
    cli.run_script(main)
