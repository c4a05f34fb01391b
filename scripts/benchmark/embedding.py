"""Embed the sentences of a file: BertEmbedding against GluonNLP 0.10's own recipe.

Both run the same random weights in one process. The recipe is that of GluonNLP's
scripts/bert/embedding.py: every sentence is padded to --max_seq_length (longer ones are cut, here
as there), a DataLoader makes the batches, and Python loops merge the pieces.
"""

import itertools
import statistics
import tempfile
import time

import mxnet as mx
import numpy as np

from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.util import threads


def parse_arguments(argv):
    parser = cli.parser(__doc__.splitlines()[0])
    parser.add_argument('--file', required=True, help='one sentence a line, in UTF-8')
    parser.add_argument('--vocab', required=True, help='vocab.txt of an uncased BERT')
    parser.add_argument('--count', type=int, default=1000, help='how many of the sentences')
    parser.add_argument('--layers', type=int, default=6)
    parser.add_argument('--units', type=int, default=384)
    parser.add_argument('--heads', type=int, default=12)
    parser.add_argument('--max_seq_length', type=int, default=128, help='the default of theirs')
    parser.add_argument('--batch_size', type=int, default=256)
    parser.add_argument('--repeats', type=int, default=3, help='rounds over all candidates')
    return parser.parse_args(argv)


def read_sentences(path, count):
    try:
        with open(path, encoding='utf-8') as file:
            lines = (line.strip() for line in file)
            sentences = list(itertools.islice((line for line in lines if line), count))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {path!r}: {error}') from error
    if not sentences:
        raise InputError(f'{path!r} has no sentences')
    return sentences


def our_embedding(args, folder):
    """BertEmbedding with a new model, which is saved to `folder`."""
    from bert import BertConfig, BertModel
    from bert.tokenizer import BertTokenizer
    from bert_embedding import BertEmbedding

    tokenizer = BertTokenizer(args.vocab)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.units,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.units,
    )
    block = BertModel(config, use_pooler=False)
    block.initialize()
    block.save_pretrained(folder, tokenizer)
    return BertEmbedding(
        model=folder, max_seq_length=args.max_seq_length, batch_size=args.batch_size
    )


def gluonnlp_embedding(ours, args, folder, hybridize):
    """GluonNLP's recipe with the weights of `ours`, as a function."""
    import gluonnlp as nlp

    path = f'{folder}/gluonnlp.params'
    ours.bert.save_parameters(path, format='gluonnlp')
    config = ours.bert.config
    model = nlp.model.BERTModel(
        nlp.model.BERTEncoder(
            num_layers=args.layers,
            units=args.units,
            hidden_size=4 * args.units,
            num_heads=args.heads,
            max_length=config.max_position_embeddings,
            dropout=0.1,
            layer_norm_eps=config.layer_norm_eps,
        ),
        vocab_size=config.vocab_size,
        token_type_vocab_size=config.type_vocab_size,
        units=args.units,
        embed_size=args.units,
        use_pooler=False,
        use_decoder=False,
        use_classifier=False,
    )
    model.load_parameters(path)
    if hybridize:
        model.hybridize(static_alloc=True)
    vocab = ours.vocab
    transform = nlp.data.BERTSentenceTransform(
        nlp.data.BERTTokenizer(vocab, lower=True), max_seq_length=args.max_seq_length, pair=False
    )
    skipped = {vocab[vocab.cls_token], vocab[vocab.sep_token]}
    padding = vocab[vocab.padding_token]

    def merge(ids, states):
        tokens, vectors, count = [], [], 1
        for token_id, state in zip(ids, states):
            if token_id == padding:
                break
            if token_id in skipped:
                continue
            token = vocab.idx_to_token[token_id]
            if token.startswith('##'):
                tokens[-1] += token[2:]
                vectors[-1] += state
                count += 1
                continue
            if count > 1:
                vectors[-1] /= count
                count = 1
            tokens.append(token)
            vectors.append(state)
        if count > 1:
            vectors[-1] /= count
        return tokens, vectors

    def embed(sentences):
        dataset = mx.gluon.data.SimpleDataset([[text] for text in sentences])
        loader = mx.gluon.data.DataLoader(dataset.transform(transform), args.batch_size)
        results = []
        for ids, lengths, types in loader:
            states = model(ids, types, lengths.astype('float32'))
            for row in zip(ids.asnumpy(), states.asnumpy()):
                results.append(merge(*row))
        return results

    return embed


def greatest_difference(results, others):
    """Of all vectors; InputError if the words differ."""
    greatest = 0
    for (tokens, vectors), (other_tokens, other_vectors) in zip(results, others):
        if tokens != other_tokens:
            raise InputError(f'the words differ: {tokens} and {other_tokens}')
        if tokens:
            greatest = max(greatest, np.abs(np.subtract(vectors, other_vectors)).max())
    return greatest


def main(argv=None):
    args = parse_arguments(argv)
    sentences = read_sentences(args.file, args.count)
    with tempfile.TemporaryDirectory() as folder:
        ours = our_embedding(args, folder)
        candidates = {
            'BertEmbedding': ours,
            'GluonNLP recipe': gluonnlp_embedding(ours, args, folder, False),
            'GluonNLP recipe, hybridized': gluonnlp_embedding(ours, args, folder, True),
        }
    lengths = [len(ours.tokenizer.tokenize(text)) + 2 for text in sentences]
    print(
        f'{len(sentences)} sentences, {np.mean(lengths):.1f} pieces on average, {max(lengths)} at '
        f'most; {args.layers} layers of {args.units} units; {threads.available_processors()} '
        f'processors; MXNet {mx.__version__}',
        flush=True,
    )
    expected = ours(sentences)
    for name, embed in list(candidates.items())[1:]:
        difference = greatest_difference(expected, embed(sentences))
        print(f'{name}: vectors differ from ours by {difference:.1e} at most', flush=True)
    times = {name: [] for name in candidates}
    for _ in range(args.repeats):
        for name, embed in candidates.items():
            start = time.perf_counter()
            embed(sentences)
            times[name].append(time.perf_counter() - start)
    print(f'{"":<30}{"sentences/s":>12}{"ours is faster by":>20}')
    ours_time = statistics.median(times['BertEmbedding'])
    for name, values in times.items():
        seconds = statistics.median(values)
        print(f'{name:<30}{len(sentences) / seconds:>12.1f}{seconds / ours_time:>19.2f}x')


if __name__ == '__main__':
    raise SystemExit(cli.run(main))
