"""Describe a model: its family, sizes, task, labels, and how it was trained.

python info.py best_model
python info.py bert-base-uncased --format json
python info.py --list
"""

import json
import os

from model_zoo.app import cli

#: the fields of a run's results.json that are printed
HISTORY = ('task', 'best_epoch', 'best', 'dev', 'seconds')


def describe(name):
    """Return a model's description, by readable names."""
    from model_zoo.opening import open_model
    from model_zoo.registry import family_of_class

    block, tokenizer, files = open_model(name)
    config, parameters = block.config, block.collect_params().values()
    count = sum(int(parameter.data().size) for parameter in parameters)
    facts = {
        'model': name,
        'family': family_of_class(type(block)).name,
        'block': type(block).__name__,
        'parameters': count,
        'megabytes in float32': round(count * 4 / 1e6, 1),
        'vocabulary': f'{len(tokenizer)} tokens ({type(tokenizer).__name__})',
        'longest text': block.base.context_length,
        'weights': files.weights,
        'from': files.source,
        'trained for': config.extras.get('finetuning_task'),
        'labels': list((config.extras.get('id2label') or {}).values()) or None,
        'configuration': {
            key: value for key, value in config.to_dict().items() if key not in config.extras
        },
        'history': history(name),
    }
    return {key: value for key, value in facts.items() if value not in (None, {})}


def history(folder):
    """Return the history in the results.json beside a trained model."""
    from model_zoo.util.reading import read_json

    for parent in (folder, os.path.dirname(os.path.abspath(folder))):
        path = os.path.join(parent, 'results.json')
        if os.path.isfile(path):
            results = read_json(path, shape=dict)
            return {key: results[key] for key in HISTORY if key in results}
    return {}


def spell(value):
    """Return a value as one line of text."""
    if isinstance(value, dict):
        return ', '.join(f'{name} {spell(score)}' for name, score in value.items()) or 'none'
    if isinstance(value, list):
        return ', '.join(map(spell, value))
    return f'{value:.4g}' if isinstance(value, float) else str(value)


def main(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', nargs='?', help='folder, file or name of a model')
    parser.add_argument('--list', action='store_true', help="print the known models' names")
    parser.add_argument('--format', choices=['text', 'json'], default='text')
    args = parser.parse_args(argv)
    if (args.model is None) != args.list:
        parser.error('name a model, or use --list')
    cli.setup_logging()
    if args.list:
        from model_zoo.pretrained import list_pretrained

        content = [
            {'model': entry.model, 'dataset': entry.dataset, 'names': list(entry.names)}
            for entry in list_pretrained()
        ]
        lines = [f'{e["model"]:<28}{e["dataset"]:<34}{spell(e["names"])}' for e in content]
    else:
        content = describe(args.model)
        lines = [f'{key + ":":<22}{spell(value)}' for key, value in content.items()]
    if args.format == 'json':
        lines = [json.dumps(content, indent=2, default=str)]
    print('\n'.join(line.rstrip() for line in lines))


if __name__ == '__main__':
    cli.run_script(main)
