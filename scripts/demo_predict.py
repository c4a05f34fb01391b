"""Predict with an exported classifier: MXNet runs the graph, this project only tokenizes.

    python scripts/demo_predict.py exported/classification best_model 'What a fine day.' ...

The first argument is the export's prefix, the second the folder with the tokenizer's files and the
labels' names, as finetune_classifier.py writes it.
"""

import os

from model_zoo.app import cli
from model_zoo.util.reading import read_json


def main(argv=None):
    """Print the label and its probability for each sentence."""
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('prefix', help='read PREFIX-symbol.json and PREFIX-0000.params')
    parser.add_argument('model_dir', help='folder with config.json and vocab.txt')
    parser.add_argument('sentences', nargs='+')
    args = parser.parse_args(argv)
    import mxnet as mx

    from bert import BertTokenizer

    symbol, parameters = f'{args.prefix}-symbol.json', f'{args.prefix}-0000.params'
    net = mx.gluon.SymbolBlock.imports(symbol, ['data0', 'data1', 'data2'], parameters)
    tokenizer = BertTokenizer.from_pretrained(args.model_dir)
    labels = read_json(os.path.join(args.model_dir, 'config.json'))['id2label']
    batch = tokenizer.encode_batch(args.sentences, max_length=64)
    arrays = (batch.input_ids, batch.token_types, batch.valid_length)
    logits = net(*(mx.nd.array(array) for array in arrays))
    probabilities = logits.softmax().asnumpy()  # (sentences, labels)
    for sentence, row in zip(args.sentences, probabilities):
        print(f'label {labels[str(row.argmax())]} ({row.max():.2f})  {sentence}')


if __name__ == '__main__':
    cli.run_script(main)
