"""Label texts with a trained classifier.

    python predict.py best_model 'What a fine day.' 'What a pity.'
    python predict.py best_model --file reviews.csv --text_column review --output labels.csv
    cat reviews.txt | python predict.py best_model --file -

The model is a folder that finetune_classifier.py wrote, or any other classifier that the zoo reads.
Each line of the output is a text with its label and score, or a regression's number under the name
of the column that it was trained on. With ``--pairs``, a text is two texts with a tab between them,
or in two columns of a table. A table keeps its own columns, followed by ``label`` and ``score``;
if it has a column ``label``, the new one is called ``predicted_label``.
"""

from model_zoo.app import cli
from model_zoo.app.arguments import use_parser
from model_zoo.errors import InputError


def main(argv=None):
    parser = use_parser(__doc__)
    add = parser.add_argument
    add('--pairs', action='store_true', help='the texts of a pair are separated by a tab')
    add('--all_scores', action='store_true', help='return the scores of all labels')
    add('--max_length', type=int, help='in tokens per text; longer texts are truncated')
    parser.add_aliases('max_length', 'max_len')
    args = parser.parse_intermixed_args(argv)
    from model_zoo.app.use import label_texts

    for number, text in enumerate(args.texts, 1):
        if not text.strip():
            raise InputError(f'text {number} is blank: leave it out')
    pairs = args.pairs or args.text_pair_column is not None
    label_texts(args, pairs or (False if args.text_column else None))


if __name__ == '__main__':
    cli.run_script(main)
