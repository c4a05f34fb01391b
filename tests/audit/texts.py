"""Hostile texts through every tokenizer, pipeline and command."""

import contextlib
import io
import json
import math
import string

import mxnet as mx
import numpy as np
import originals
import tiny_models
from script_runs import load_script
from target import RIGHT, Target, Unequal

import bert
import gpt
import gpt2
import model_zoo
import transfo_xl
from bert_embedding import cli as embedding_cli
from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.tokenization import FileTokenizer

__all__ = ['hostile', 'targets']

_PIECES = [
    '\0', '\ud800', '\udfff', '\udc80\ud800', '\ufeff', '\ufffe', '\uffff', '\u202e', '\u2066',
    '\u200d', '\u200b', '\u2028', '\x85', '\x1c', '\r', '\n', '\t', '\v', ' ', '\xa0', '\u3000',
    'e\u0301', '\u0301' * 40, '\u0345', '\u0130', '\u0131', '\xdf', '\ufb03', '\u1e9e', '\u01c5',
    '\U0001f600', '\U0001f468\u200d\U0001f469\u200d\U0001f467', '\U0001f1e9\U0001f1ea', '\u6771',
    '\U00020000', '\U0010ffff', '\uac00', '\u1100\u1161', '\u0e33', '\u0627\u0644', '\ue000',
    '[CLS]', '[SEP]', '[MASK]', '[PAD]', '[unused1]', '<s>', '</s>', '<|endoftext|>', '<unk>',
    '##s', '##', '\u2581', '\u0120', '</w>', '@@', '@-@', '%s', '{0}', '\\', '\'"', '<b>&amp;',
    'the cat', 'Paris.', 'a', 'sleeps', '.', '1e400', '-0', 'NaN', ',', ';', '|||', '\x7f', '\x9f',
]  # fmt: skip


def hostile(rng):
    """A text that programs have trouble with."""
    kind = rng.random()
    if kind < 0.02:
        one = rng.choice(['x', '\u6771', '\u0301', '[', '.', 'ab', '\U0001f600', ' ', '\ud800',
                          '[MASK]', '\0', '\n', '\r ', '- ', "'", '<mask>', '\u2014'])  # fmt: skip
        return one * ((1 << rng.randrange(12, 20)) // len(one))
    if kind < 0.03:  # a word without an end
        pair = rng.choice(['ab', '\u20acy', 'a\u0301', '_!', '\u30ab\u30fc', 'a\x1c', '1a'])
        return f'the {pair * (1 << rng.randrange(12, 20))} cat'
    if kind < 0.1:
        return ''.join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(30)))
    pieces = rng.choices([*_PIECES, *string.ascii_letters], k=rng.choice([0, 1, 2, 5, 20, 200]))
    return rng.choice(['', '', ' ']).join(pieces)


# -- tokenizers ---------------------------------------------------------------------------------


def _made(make, build):
    def prepare(folder):
        make(folder)
        return build(folder)

    return prepare


def _tokenizers():
    """Name -> function of a folder that makes the tokenizer."""
    files = originals
    return {
        'BERT': _made(files.vocab, lambda f: bert.BertTokenizer(f / 'vocab.txt')),
        'BERT, cased': _made(files.vocab, lambda f: bert.BertTokenizer(f / 'vocab.txt', False)),
        'RoBERTa': _made(files.roberta_folder, bert.RobertaTokenizer.from_pretrained),
        'XLM-R': _made(files.sentence_pieces, lambda f: bert.XLMRobertaTokenizer(
            str(f / 'sentencepiece.bpe.model'))),
        'GPT': _made(files.gpt_pairs, lambda f: gpt.OpenAIGPTTokenizer(
            str(f / 'vocab.json'), str(f / 'merges.txt'))),
        'GPT-2': _made(files.byte_pairs, lambda f: gpt2.GPT2Tokenizer(
            str(f / 'vocab.json'), str(f / 'merges.txt'))),
        'Transformer-XL': _made(files.words, lambda f:
                                transfo_xl.TransfoXLTokenizer.from_pretrained(f / 'words.txt')),
        'file': _made(files.tokenizer_json, lambda f: FileTokenizer.from_pretrained(str(f))),
    }  # fmt: skip


def _tokenize(tokenizer, rng, folder):
    text, size = hostile(rng), len(tokenizer.vocab)
    (folder / 'text.json').write_text(json.dumps(text))
    encoded = tokenizer.encode_batch([text, 'the cat', text])
    rows = [list(map(int, row[:length]))
            for row, length in zip(encoded['input_ids'], encoded['valid_length'])]  # fmt: skip
    if rows[0] != rows[2] or any(not 0 <= each < size for row in rows for each in row):
        raise Unequal(f'the ids {rows[0][:20]} and {rows[2][:20]}')
    tokens = tokenizer.convert_ids_to_tokens(rows[0])
    if list(tokenizer.convert_tokens_to_ids(tokens)) != rows[0]:
        raise Unequal(f'the tokens {tokens[:20]}')
    tokenizer.decode(rows[0]).encode()
    tokenizer.tokenize(text)
    return RIGHT


# -- pipelines ----------------------------------------------------------------------------------


def _bert_pipeline(task, block_class, labels=None):
    def prepare(folder):
        path = tiny_models.save_bert(folder / 'model', block_class, labels)
        return model_zoo.pipeline(task, path)

    return prepare


def _generator(folder):
    return model_zoo.pipeline('text-generation', tiny_models.save_gpt2(folder))


def _pipelines():
    """Name -> (prepare, function of the pipeline and a maker of texts)."""
    classifier = bert.BertForSequenceClassification
    return {
        'classification': (_bert_pipeline('text-classification', classifier, ['a', 'b']),
                           lambda pipeline, text: pipeline([text(), text()])),
        'tagging': (_bert_pipeline('token-classification', bert.BertForTokenClassification,
                                   ['O', 'B-X', 'I-X']), lambda pipeline, text: pipeline(text())),
        'answers': (_bert_pipeline('question-answering', bert.BertForQuestionAnswering),
                    lambda pipeline, text: pipeline(
                        {'question': 'x' + text()[:6], 'context': 'a ' + text()})),
        'masks': (_bert_pipeline('fill-mask', bert.BertForMaskedLM),
                  lambda pipeline, text: pipeline(text() + '[MASK]')),
        'features': (_bert_pipeline('feature-extraction', bert.BertModel),
                     lambda pipeline, text: pipeline([text()])),
        'choices': (_bert_pipeline('multiple-choice', bert.BertForMultipleChoice),
                    lambda pipeline, text: pipeline(
                        {'text': text(), 'choices': [text(), text()]})),
        'zero shot': (_bert_pipeline('zero-shot-classification', classifier,
                                     ['contradiction', 'entailment']),
                      lambda pipeline, text: pipeline(
                          text(), candidate_labels=[text(), 'cat'])),
        'similarity': (_bert_pipeline('sentence-similarity', bert.BertModel),
                       lambda pipeline, text: pipeline((text(), text()))),
        'generation': (_generator, lambda pipeline, text: pipeline(text(), max_new_tokens=4)),
    }  # fmt: skip


def _finite(value):
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    if isinstance(value, (np.ndarray, mx.nd.NDArray)):
        return bool(np.isfinite(value if isinstance(value, np.ndarray) else value.asnumpy()).all())
    return math.isfinite(value) if isinstance(value, float) else True


def _use(call):
    def attempt(pipeline, rng, folder):
        drawn = []

        def text():
            drawn.append(hostile(rng))
            (folder / 'texts.json').write_text(json.dumps(drawn))
            return drawn[-1]

        if not _finite(call(pipeline, text)):
            raise Unequal('a result is not finite')
        return RIGHT

    return attempt


# -- commands -----------------------------------------------------------------------------------


def _commands(folder):
    """Name -> function of a text, a file of texts and a folder for output: main and arguments."""
    def saved(name, block_class, labels=None):
        return tiny_models.save_bert(folder / name, block_class, labels)

    classifier = saved('classifier', bert.BertForSequenceClassification, ['bad', 'good'])
    reader = saved('reader', bert.BertForQuestionAnswering)
    tagger = saved('tagger', bert.BertForTokenClassification, ['O', 'B-X'])
    masked = saved('masked', bert.BertForMaskedLM)
    plain = saved('plain', bert.BertModel)
    (folder / 'gpt2').mkdir()
    writer = tiny_models.save_gpt2(folder / 'gpt2')
    sentences = folder / 'sentences'
    originals.sentences_today(sentences)
    vocab = f'{classifier}/vocab.txt'
    scripts = {name: load_script(name).main for name in (
        'predict', 'ask', 'tag', 'fill', 'generate_gpt2', 'extract_features', 'search',
        'create_pretraining_data', 'learn_vocab',
    )}  # fmt: skip
    length = ['--max_seq_length', 24]
    made = {
        'predict': lambda t, f, o: (scripts['predict'], [classifier, f'a {t}']),
        'predict file': lambda t, f, o: (
            scripts['predict'], [classifier, '--file', f, '--format', 'tsv']),
        'ask': lambda t, f, o: (
            scripts['ask'], [reader, f'x {t}', '--context', f]),
        'tag': lambda t, f, o: (scripts['tag'], [tagger, '--file', f]),
        'fill': lambda t, f, o: (scripts['fill'], [masked, f'a {t} [MASK]']),
        'generate': lambda t, f, o: (scripts['generate_gpt2'], [
            '--model_name_or_path', writer, f'--prompt={t}', '--length', 3]),
        'extract': lambda t, f, o: (scripts['extract_features'], [
            '--input_file', f, '--output_file', o / 'x.jsonl', '--bert_model', plain, '--layers=-1',
            *length]),
        'embed': lambda t, f, o: (embedding_cli.main, [
            '--model', sentences, '--sentences', f'a {t}', 'a']),
        'search': lambda t, f, o: (scripts['search'], [
            sentences, f'q {t}', '--corpus', f]),
        'samples': lambda t, f, o: (scripts['create_pretraining_data'], [
            '--input_file', f, '--output_dir', o / 'samples', '--vocab', vocab,
            '--max_seq_length', 24, '--num_workers', 1]),
        'learn vocab': lambda t, f, o: (scripts['learn_vocab'], [
            '--input_file', f, '--output_dir', o / 'vocab', '--vocab_size', 60]),
    }  # fmt: skip
    for name, command in made.items():  # with what is harmless, each does its work
        place = folder / 'harmless' / name
        place.mkdir(parents=True)
        (place / 'texts.txt').write_text('The cat sleeps.\nA dog in Paris.\n\nThe film is good.\n')
        status, said = _run(*command('the cat', place / 'texts.txt', place))
        if status != 0:
            raise Unequal(f'{name} ends with {status}: {said}')
    return made


def _run(main, argv, encoding='utf-8'):
    """The exit status of a command, and what it says on standard error."""
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    said = io.TextIOWrapper(io.BytesIO(), 'utf-8', 'backslashreplace')
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            status = cli.run(main, [str(each) for each in argv])
        except SystemExit as end:
            status = end.code
        finally:
            for stream in (out, said):
                if not stream.closed:  # as where its reader has left
                    stream.flush()
    return status, '' if said.closed else said.buffer.getvalue().decode(errors='replace')


def _text_file(rng):
    """Some lines, and seldom bytes that are no UTF-8."""
    lines = [hostile(rng)[: rng.choice([20000, 200_000])] for _ in range(rng.choice([1, 3, 10]))]
    data = '\n'.join(lines).encode('utf-8', 'surrogatepass' if rng.random() < 0.3 else 'replace')
    return data + rng.choice([b'', b'\n', b'\n\nthe cat\nsleeps\n\n', b'\xff\n'])


def _command(commands, rng, folder):
    name = rng.choice(sorted(commands))
    text = hostile(rng)[:100000]
    (folder / 'texts.txt').write_bytes(_text_file(rng))
    main, argv = commands[name](text, folder / 'texts.txt', folder)
    argv = [str(each) for each in argv]
    (folder / 'command.json').write_text(json.dumps([name, *argv]))
    status, said = _run(main, argv, rng.choice(['utf-8', 'ascii', 'latin-1']))
    if 'Traceback' in said:
        raise Unequal(said[-3000:])
    if status == 0:
        return RIGHT
    errors = [line for line in said.splitlines() if 'error: ' in line]
    if status not in (1, 2) or len(errors) != 1 or 'MXNet:' in errors[0]:
        raise Unequal(f'{name}: exit status {status}, {said[-2000:]!r}')
    raise InputError(errors[0][:1000])


def targets():
    # the library keeps some 500 bytes of a token: a million of one text, twice, is over 1 GB
    made = [Target(f'texts/tokenizer {name}', prepare, _tokenize, seconds=60, memory=2 << 30)
            for name, prepare in _tokenizers().items()]  # fmt: skip
    for name, (prepare, call) in _pipelines().items():
        made.append(Target(f'texts/pipeline {name}', prepare, _use(call), seconds=120,
                           memory=2 << 30, batch=5))  # fmt: skip
    made.append(Target('texts/commands', _commands, _command, seconds=120, memory=2 << 30,
                       batch=5))  # fmt: skip
    return made
