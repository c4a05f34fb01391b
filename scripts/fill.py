"""Fill the [MASK] of texts with likely words.

    python fill.py bert-base-uncased 'Paris is the [MASK] of France.'

The model is a BERT with a masked language model head. Each line of the output is a word with its
probability, and the text with that word.
"""

from model_zoo.app import cli
from model_zoo.app.arguments import use_parser


def main(argv=None):
    parser = use_parser(__doc__, help='the texts, each in quotes, with [MASK]', pairs=False)
    parser.add_argument('--top_k', type=int, default=5, help='number of words per mask')
    args = parser.parse_intermixed_args(argv)
    from model_zoo.app.use import run_pipeline

    def records(unmasker, texts):
        for filled in unmasker(texts, top_k=args.top_k):
            groups = filled if isinstance(filled[0], list) else [filled]
            for mask, group in enumerate(groups):
                for guess in group:
                    word, score, text = guess['token_str'], guess['score'], guess['sequence']
                    yield {'word': word, 'score': score, 'mask': mask, 'text': text}

    run_pipeline('fill-mask', args, records)


if __name__ == '__main__':
    cli.run_script(main)
