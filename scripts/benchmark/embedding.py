"""Embed the sentences of a file: BertEmbedding beside GluonNLP 0.10's own recipe, in turn.

Both run the same random weights, and are checked to give the same vectors. The recipe is that of
GluonNLP's scripts/bert/embedding.py: every sentence is padded to --max_seq_length (longer ones are
cut by both), a DataLoader makes the batches, and Python loops merge the word pieces.
"""

import itertools
import os

from side_by_side import Case, Contender, add_flags, measure, report, run


def read_sentences(path, count):
    from model_zoo.errors import InputError

    try:
        with open(path, encoding='utf-8') as file:
            lines = (line.strip() for line in file)
            sentences = list(itertools.islice((line for line in lines if line), count))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {path!r}: {error}') from error
    if not sentences:
        raise InputError(f'{path!r} has no sentences')
    return sentences


def ours(options, sentences):
    from bert_embedding import BertEmbedding

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        _write_model(options)
    embedding = BertEmbedding(
        model=options.folder, max_seq_length=options.max_seq_length, batch_size=options.batch_size
    )
    return lambda count: lambda: embedding(sentences[:count])


def _write_model(options):
    """A new model in `options.folder`, for GluonNLP as well."""
    from bert import BertConfig, BertModel, BertTokenizer

    tokenizer = BertTokenizer(options.vocab)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.units,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.units,
    )
    block = BertModel(config, use_pooler=False)
    block.initialize()
    block.save_pretrained(options.folder, tokenizer)
    block.save_parameters(os.path.join(options.folder, 'gluonnlp.params'), format='gluonnlp')
    with open(os.path.join(options.folder, 'gluonnlp.json'), 'w', encoding='utf-8') as file:
        file.write(tokenizer.vocab.to_json())


def gluonnlp_recipe(options, sentences, hybridize):
    import gluonnlp as nlp
    import mxnet as mx

    with open(os.path.join(options.folder, 'gluonnlp.json'), encoding='utf-8') as file:
        vocab = nlp.vocab.BERTVocab.from_json(file.read())
    model = nlp.model.BERTModel(
        nlp.model.BERTEncoder(
            num_layers=options.layers,
            units=options.units,
            hidden_size=4 * options.units,
            num_heads=options.heads,
            max_length=512,
            dropout=0.1,
            layer_norm_eps=1e-12,
        ),
        vocab_size=len(vocab),
        token_type_vocab_size=2,
        units=options.units,
        embed_size=options.units,
        use_pooler=False,
        use_decoder=False,
        use_classifier=False,
    )
    model.load_parameters(os.path.join(options.folder, 'gluonnlp.params'))
    if hybridize:
        model.hybridize(static_alloc=True)
    transform = nlp.data.BERTSentenceTransform(
        nlp.data.BERTTokenizer(vocab, lower=True),
        max_seq_length=options.max_seq_length,
        pair=False,
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

    def embed(count):
        dataset = mx.gluon.data.SimpleDataset([[text] for text in sentences[:count]])
        loader = mx.gluon.data.DataLoader(dataset.transform(transform), options.batch_size)
        results = []
        for ids, lengths, types in loader:
            states = model(ids, types, lengths.astype('float32'))
            for row in zip(ids.asnumpy(), states.asnumpy()):
                results.append(merge(*row))
        return results

    return lambda count: lambda: embed(count)


def _same_vectors(name, results, expected):
    import numpy as np

    from model_zoo.errors import InputError

    greatest = 0
    for (tokens, vectors), (expected_tokens, expected_vectors) in zip(results, expected):
        if list(tokens) != list(expected_tokens):
            raise InputError(f'{name} has other words: {tokens} rather than {expected_tokens}')
        if tokens:
            greatest = max(greatest, np.abs(np.subtract(vectors, expected_vectors)).max())
    print(f'{name}: vectors differ from ours by {greatest:.1e} at most', flush=True)


def main(argv=None):
    parser = add_flags(__doc__.splitlines()[0])
    parser.add_argument('--file', required=True, help='one sentence per line, in UTF-8')
    parser.add_argument('--vocab', required=True, help='vocab.txt of an uncased BERT')
    parser.add_argument('--count', type=int, default=1000, help='how many of the sentences')
    parser.add_argument('--layers', type=int, default=6)
    parser.add_argument('--units', type=int, default=384)
    parser.add_argument('--heads', type=int, default=12)
    parser.add_argument('--max_seq_length', type=int, default=128, help="the recipe's default")
    parser.add_argument('--batch_size', type=int, default=256)
    parser.add_argument('--repeats', type=int, default=3, help='turns of each contender')
    args = parser.parse_args(argv)
    args.rounds = args.repeats
    sentences = read_sentences(args.file, args.count)
    arguments = {'sentences': sentences}
    peers = [
        Contender(
            f'GluonNLP recipe{", hybridized" if hybridize else ""}',
            gluonnlp_recipe,
            ('gluonnlp',),
            {**arguments, 'hybridize': hybridize},
        )
        for hybridize in (False, True)
    ]
    measured = measure(
        [Contender('BertEmbedding', ours, arguments=arguments)],
        peers,
        [Case(f'{len(sentences)}', len(sentences), len(sentences))],
        args,
        warm=False,
        same=_same_vectors,
    )
    pieces = [len(tokens) for tokens, _ in measured[0].answer]
    report(
        f'{len(sentences)} sentences, {sum(pieces) / len(pieces):.1f} words on average, '
        f'{max(pieces)} at most; {args.layers} layers of {args.units} units',
        measured,
        args.json,
        'sentences/s',
    )


if __name__ == '__main__':
    run(main)
