"""Find the texts of a file that are most similar to queries.

    python search.py all-MiniLM-L6-v2 --corpus articles.txt 'Where do cats sleep?'
    cat questions.txt | python search.py all-MiniLM-L6-v2 --corpus articles.jsonl --file -

The corpus has one text per line, or is a table (JSON lines, .csv, .tsv) with a column ``text``. Its
vectors are kept beside it, so that the next search with the same model doesn't compute them again.
Each line of the output is a text with its line in the file, its similarity (a cosine) and the
query.
"""

from model_zoo.app import cli
from model_zoo.app.arguments import add_long_texts, use_parser
from model_zoo.util.choices import POOLINGS


def main(argv=None):
    parser = use_parser(__doc__, 'query', 'the queries, each in quotes', pairs=False)
    add = parser.add_argument
    texts = 'file with one text per line, or .jsonl, .csv, .tsv'
    add('--corpus', required=True, metavar='FILE', help=texts)
    add('--text_field', metavar='COLUMN', help='of the corpus; default: --text_column')
    add('--top_k', type=int, default=5, help='number of texts per query')
    add('--pooling', choices=POOLINGS, help="default: the model's own, else mean")
    add('--prompt', help='text to put before each text of the corpus')
    add('--query_prompt', help='text to put before each query')
    add('--max_length', type=int, help="in tokens per text; default: the model's own")
    parser.add_aliases('max_length', 'max_len')
    add_long_texts(parser)
    add('--no_cache', action='store_true', help="don't keep the vectors beside the corpus")
    args = parser.parse_intermixed_args(argv)
    from bert_embedding.embedding import BertEmbedding
    from model_zoo.app.corpus import Corpus
    from model_zoo.app.texts import read_texts
    from model_zoo.app.writing import write_records
    from model_zoo.inference import nearest

    cli.setup_logging()
    column = args.text_field or args.text_column
    args.text_column = args.file and args.text_column
    queries = list(read_texts(args))
    corpus = Corpus(args.corpus, column, args.encoding)
    options = {'engine': args.engine, 'dtype': args.precision, 'long_texts': args.long_texts}
    embedding = BertEmbedding(args.model, max_seq_length=args.max_length, **options)

    def embed(texts, prompt):
        return embedding.iter_sentence_vectors(texts, args.pooling, prompt=prompt)

    built = embedding.digest(args.pooling, args.prompt)
    vectors = corpus.vectors(lambda texts: embed(texts, args.prompt), built, not args.no_cache)
    asked = list(embed(queries, args.query_prompt))
    numbers, found = nearest(asked, vectors, args.top_k, embedding.similarity_of(args.pooling))

    def records():
        for query, row, scores in zip(queries, numbers.tolist(), found.tolist()):
            for number, score in zip(row, scores):
                line, text = corpus.rows[number]
                yield {'score': score, 'line': line, 'query': query, 'text': text}

    write_records(records(), args.format, args.output)


if __name__ == '__main__':
    cli.run_script(main)
