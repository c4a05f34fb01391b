"""Sentence vectors of the sentences of a file: BertEmbedding beside sentence-transformers, in turn.

All run the weights of the same folder, such as a copy of all-MiniLM-L6-v2's. They are checked to
give the same vectors: the mean of the pieces' vectors, normalized. --max_seq_length cuts sentences.
"""

from embedding import read_sentences
from side_by_side import Case, Contender, add_flags, measure, report, run, threads

#: least cosine with the float32 vectors of the first contender; INT8 has a contract of its own
LEAST_COSINE = {'float32': 0.99999, 'bfloat16': 0.999, 'int8': 0.9}


def ours(options, sentences, engine, dtype):
    import os

    from bert_embedding import BertEmbedding

    os.environ['MXNET_HOME'] = options.folder  # where an engine keeps its file
    embedding = BertEmbedding(
        model=options.model, max_seq_length=options.max_seq_length, engine=engine, dtype=dtype
    )
    return lambda count: lambda: embedding.sentence_vectors(
        sentences[:count], 'mean', normalize=True
    )


def sentence_transformers(options, sentences):
    import torch
    from sentence_transformers import SentenceTransformer, models

    torch.set_num_threads(threads())
    encoder = models.Transformer(options.model, max_seq_length=options.max_seq_length)
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), 'mean')
    model = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device='cpu')
    return lambda count: lambda: model.encode(sentences[:count])


def _same_vectors(name, vectors, expected):
    import numpy as np

    from model_zoo.errors import InputError

    least = np.min(np.sum(np.multiply(vectors, expected), axis=1))
    print(f'{name}: cosine with the first at least {least:.6f}', flush=True)
    bound = next((low for dtype, low in LEAST_COSINE.items() if dtype in name), 0.99999)
    if least < bound:
        raise InputError(f'{name} has other vectors than the first')


def main(argv=None):
    parser = add_flags(__doc__.splitlines()[0], rounds=5, seconds=60)
    parser.add_argument('--file', required=True, help='one sentence a line, in UTF-8')
    parser.add_argument('--model', required=True, help='folder with weights and vocab.txt')
    parser.add_argument('--count', type=int, default=400, help='how many of the sentences')
    parser.add_argument('--max_seq_length', type=int, default=256)
    parser.add_argument('--dtypes', nargs='+', default=['float32', 'int8'], choices=LEAST_COSINE)
    args = parser.parse_args(argv)
    sentences = read_sentences(args.file, args.count)
    contenders = []
    for dtype in args.dtypes:
        for engine in ('mxnet', 'onnxruntime'):
            if (engine, dtype) in {('mxnet', 'int8'), ('onnxruntime', 'bfloat16')}:
                continue
            contenders.append(
                Contender(
                    f'{engine} {dtype}',
                    ours,
                    ('onnx', 'onnxruntime') if engine == 'onnxruntime' else (),
                    {'sentences': sentences, 'engine': engine, 'dtype': dtype},
                )
            )
    peer = Contender(
        'sentence-transformers',
        sentence_transformers,
        ('torch', 'sentence_transformers'),
        {'sentences': sentences},
    )
    count = len(sentences)
    measured = measure(
        contenders, [peer], [Case(str(count), count, count)], args, same=_same_vectors
    )
    words = sum(len(sentence.split()) for sentence in sentences) / count
    report(
        f'{count} sentences of {words:.0f} words on average, sentence vectors',
        measured,
        args.json,
        'sentences/s',
    )


if __name__ == '__main__':
    run(main)
