"""Find the entities in texts.

    python tag.py best_model 'Angela Merkel lives in Berlin.'
    python tag.py best_model --file articles.txt --output entities.csv

The model is a folder that finetune_tagging.py wrote, or any other model that labels tokens and that
the zoo reads. Each line of the output is an entity with its kind, its score, and its place in the
text. ``--strategy none`` shows the label of each token.
"""

import logging

from model_zoo.app import cli
from model_zoo.app.arguments import use_parser
from model_zoo.util.choices import STRATEGIES

logger = logging.getLogger('tag')


def main(argv=None):
    parser = use_parser(__doc__, pairs=False)
    text = "how to combine the tokens' labels into entities"
    parser.add_argument('--strategy', default='first', choices=STRATEGIES, help=text)
    args = parser.parse_intermixed_args(argv)
    from model_zoo.app.use import run_pipeline

    def records(tagger, texts):
        is_empty = True
        for number, entities in enumerate(tagger(texts, aggregation_strategy=args.strategy)):
            for entity in entities:
                is_empty = False
                yield {'text': number, **entity}
        if is_empty:
            logger.info('no entities were found')

    run_pipeline('token-classification', args, records)


if __name__ == '__main__':
    cli.run_script(main)
