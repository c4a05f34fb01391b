"""Of scripts that use, look at, convert or compare a model."""

import shutil

import tiny
from script_runs import ROOT

from bert import BertForMaskedLM, BertForSequenceClassification
from mxnet_pretrained_bert.tokenization_transfo_xl import TransfoXLCorpus
from transfo_xl import TransfoXLLMHeadModel

from .case import BadInput, named

__all__ = ['MODELS']

CHECKPOINTS = ROOT / 'tests' / 'fixtures' / 'checkpoints'


def write_classifier(folder):
    tiny.save_bert(folder / 'model', 'abcdefgh', BertForSequenceClassification, ['bad', 'good'])
    (folder / 'dev.tsv').write_text('sentence\tlabel\na b\t0\nc d e\t1\n')


def write_masked(folder):
    tiny.save_bert(folder / 'model', 'abcdefgh', BertForMaskedLM)


def use(data, folder, edit):
    return named(edit, MODEL=[data / 'model'])


PREDICT = [
    (['MODEL'], 'there is no text'),
    (['MODEL', '--pairs', 'one text'], '--pairs'),
]
ASK = [
    (['MODEL', 'where ?'], '--context'),
    (['MODEL', '--text', 'a b'], 'no question: give one or more, each in quotes, or --file'),
]
TAG = [(['MODEL', 'the cat'], 'token-classification')]
FILL = [(['none', 'the [MASK] .'], "unknown folder or pretrained model 'none'")]
INFO = [(['no_such_model'], 'no_such_model')]


def search(data, folder, edit):
    (folder / 'texts.txt').write_text('a b\nc\n')
    (folder / 'texts.jsonl').write_text('{"title": "a b"}\n')
    (folder / 'empty.txt').touch()
    return [data / 'model', '--corpus', 'texts.txt', *edit]


SEARCH = [
    (['--corpus', 'empty.txt', 'a'], "'empty.txt' is empty: give a file with one text per line"),
    (['--corpus', 'texts.jsonl', 'a'], 'texts.jsonl: .* the columns are title'),
]
SERVE = [
    (['MODEL', '--batch_tokens', '0'], '--batch_tokens must be at least 1, not 0'),
    (['MODEL', '--api_key', 'env:NO_KEY', '--port', '0'], 'NO_KEY'),
    (['MODEL', 'MODEL'], 'NAME=MODEL'),
    (['MODEL', '--port', '0', '--max_length', '1000000'], 'max_length'),
]


def bertology(data, folder, edit):
    argv = ['--model', data / 'model', '--task_name', 'SST-2', '--data_dir', data]
    return [*argv, '--labels', '0,1', '--output_dir', folder / 'out', '--max_length', 16, *edit]


BERTOLOGY = [
    (['--masking_threshold', '1'], '--masking_threshold must be between 0 and 1, not 1.0'),
    (['--max_length', '99'], 'must be from 2 to 24'),
    (['--task_name', 'custom'], 'train_file'),
]


def write_gpt2(folder):
    tiny.save_gpt2(folder / 'model', n_positions=48)


def generate(data, folder, edit):
    (folder / 'blank.txt').write_text('\n \n')
    return ['--model_name_or_path', data / 'model', *named(edit, HERE=[folder])]


GENERATE = [
    (['--prompt', 'a', '--unconditional'], '--prompt and --unconditional: choose one'),
    (['--output', 'x.json'], '--output goes with'),
    (['--greedy', '--top_k', '4'], '--greedy .* sample'),
    (['--prompt', 'a', '--stop', 'abc'], "--stop 'abc' is 3 tokens"),
    (['--model_name_or_path', 'bert_12_768_12'], 'not a language model'),
    (['--input_file', 'blank.txt'], 'has no prompt'),
]


def write_transfo_xl(folder):
    """Texts, a model with their vocabulary, and a corpus with another one."""
    texts = folder / 'texts'
    texts.mkdir()
    for name in ('train', 'valid', 'test'):
        (texts / f'{name}.txt').write_text('a b c d e f\nc d a\n' * 9)
    for name, special in (('model', ['<eos>']), ('other', ['<unk>', '<eos>'])):
        corpus = TransfoXLCorpus(special=special)
        corpus.build_corpus(texts, 'wt2')
        corpus.save_pretrained(folder / name)
        if name == 'model':
            block = TransfoXLLMHeadModel(tiny.transfo_xl_config(len(corpus.vocab)))
            shutil.rmtree(folder / name)
            tiny.initialized(block).save_pretrained(str(folder / name), corpus.vocab)


def evaluate(data, folder, edit):
    argv = named(edit, TEXT=[data / 'texts' / 'test.txt'], OTHER=[data / 'other'])
    return ['--model_name', data / 'model', '--work_dir', folder / 'out', *argv]


EVALUATE = [
    (['--text_file', 'none.txt'], "--text_file 'none.txt': no such file"),
    (['--model_name', 'transfo-xl-wt103'], 'no vocabulary found for transfo_xl_18_1024_16'),
    ([], 'no texts .* and no corpus in'),
    (['--dataset', 'OTHER'], 'has another vocabulary than the model'),
    (['--text_file', 'TEXT', '--batch_size', '500'], 'too short for a batch_size of 500'),
]


def convert(data, folder, edit):
    family, target, source, *flags = edit
    argv = ['--family', family, '--to', target, CHECKPOINTS / source, folder / 'out']
    return [*argv, *flags]


CONVERT = [
    (['bert', 'native', 'gone'], 'no such file or folder'),
    (['bert', 'native', 'gpt_numpy'], 'no name belongs to'),
    (['gpt2', 'native', 'gpt_transformers'], "'openai-gpt'"),
    (['bert', 'native', 'bert_transformers', '--model', 'BertForQuestionAnswering'], 'span_class'),
]


def write_extracted(folder):
    tiny.save_bert(folder / 'model', 'abc', num_hidden_layers=3)
    (folder / 'input.txt').write_text('a b\nc\n')


def extract(data, folder, edit):
    (folder / 'empty.txt').touch()
    argv = ['--input_file', data / 'input.txt', '--output_file', 'x.jsonl']
    argv += [] if '--init_checkpoint' in edit else ['--model', data / 'model']
    return [*argv, *named(edit, INPUT=[data / 'input.txt'])]


EXTRACT = [
    (['--layers', '3'], '--layers 3: the model has 3 layers: use numbers from -3 to 2'),
    (['--layers', '-1', '--max_length', '99'], '--max_length 99: the model takes 24 tokens'),
    (['--input_file', 'empty.txt'], '--input_file .* is empty'),
    (['--output_file', 'INPUT'], '--output_file .* is the input'),
    (['--init_checkpoint', 'x.ckpt'], '--init_checkpoint, --config_file and --vocab_file'),
]
MODELS = {
    name: BadInput(script, arguments, rows, write=write)
    for name, script, arguments, rows, write in (
        ('predict', 'predict', use, PREDICT, write_classifier),
        ('ask', 'ask', use, ASK, write_classifier),
        ('tag', 'tag', use, TAG, write_classifier),
        ('fill', 'fill', use, FILL, write_masked),
        ('info', 'info', use, INFO, write_classifier),
        ('search', 'search', search, SEARCH, write_masked),
        ('serve', 'serve', use, SERVE, write_classifier),
        ('bertology', 'bertology', bertology, BERTOLOGY, write_classifier),
        ('generate_gpt2', 'generate_gpt2', generate, GENERATE, write_gpt2),
        ('eval_transfo_xl', 'eval_transfo_xl', evaluate, EVALUATE, write_transfo_xl),
        ('convert_checkpoint', 'convert_checkpoint', convert, CONVERT, id),
        ('extract_features', 'extract_features', extract, EXTRACT, write_extracted),
    )
}
