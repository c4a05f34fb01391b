"""Find the texts of a file that are most similar to queries.

    python search.py all-MiniLM-L6-v2 --corpus articles.txt 'Where do cats sleep?'
    cat questions.txt | python search.py all-MiniLM-L6-v2 --corpus articles.jsonl --file -

The corpus has a text a line, or is JSON lines with a field ``text``. Its vectors are kept beside
it, so that the next search with the same model doesn't compute them again. Each line of the output
is a text with its line in the file, its similarity (a cosine) and the query.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from bert_embedding.embedding import POOLINGS, BertEmbedding
from model_zoo.app import cli
from model_zoo.app.corpus import Corpus
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.job import describe_model
from model_zoo.app.records import add_record_arguments, read_texts, write_records
from model_zoo.inference import INDEXES, nearest


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('model', help='folder or name of the model')
    add('queries', nargs='*', metavar='query', help='the queries, each in quotes')
    add('--corpus', required=True, metavar='FILE', help='one text a line, or JSON lines')
    add('--text_field', default='text', help="name of the texts' field in JSON lines")
    add('--file', help='one query a line; - is standard input')
    add('--top_k', type=int, default=5, help='texts for each query')
    add('--pooling', choices=POOLINGS, help="default: the model's own, else mean")
    add('--prompt', help='text to put before each text of the corpus')
    add('--query_prompt', help='text to put before each query')
    add('--max_len', type=int, help="cut texts to this many tokens; default: the model's own")
    add('--index', default='exact', choices=INDEXES, help='what searches')
    add('--no_cache', action='store_true', help="don't keep the vectors beside the corpus")
    add_use_arguments(parser)
    add_record_arguments(parser)
    return parser.parse_intermixed_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    queries = list(read_texts(args.queries, args.file))
    corpus = Corpus(args.corpus, args.text_field)
    embedding = BertEmbedding(
        model=args.model, max_seq_length=args.max_len, engine=args.engine, dtype=args.precision
    )

    def embed(texts, prompt):
        return embedding.iter_sentence_vectors(texts, args.pooling, prompt=prompt)

    model = args.model, describe_model(embedding.bert)
    settings = [*model, args.pooling, args.prompt, embedding.max_seq_length, args.precision]
    vectors = corpus.vectors(lambda texts: embed(texts, args.prompt), settings, not args.no_cache)
    numbers, cosines = nearest(
        list(embed(queries, args.query_prompt)), vectors, args.top_k, args.index
    )
    texts = corpus.texts_at(numbers.reshape(-1).tolist())

    def records():
        for query, row, scores in zip(queries, numbers.tolist(), cosines.tolist()):
            for number, score in zip(row, scores):
                line, text = texts[number]
                yield {'score': score, 'line': line, 'query': query, 'text': text}

    write_records(records(), args.format, args.output)


if __name__ == '__main__':
    sys.exit(cli.run(main))
