"""Of scripts that use, look at, convert or compare a model."""

import tiny
import toy_data
from script_runs import ROOT

from bert import BertForMaskedLM, BertForSequenceClassification
from transfo_xl import TransfoXLLMHeadModel

from .case import named, with_rows

__all__ = ['MODELS']

CHECKPOINTS = ROOT / 'tests' / 'fixtures' / 'checkpoints'


def write_classifier(folder):
    tiny.save_bert(folder / 'model', 'abcdefgh', BertForSequenceClassification, ['bad', 'good'])
    (folder / 'dev.tsv').write_text('sentence\tlabel\na b\t0\nc d e\t1\n')


def write_masked(folder):
    tiny.save_bert(folder / 'model', 'abcdefgh', BertForMaskedLM)


def use(data, folder, edit):
    return named(edit, MODEL=[data / 'model'])


def search(data, folder, edit):
    (folder / 'texts.txt').write_text('a b\nc\n')
    (folder / 'texts.jsonl').write_text('{"title": "a b"}\n')
    (folder / 'empty.txt').touch()
    return [data / 'model', '--corpus', 'texts.txt', *edit]


def bertology(data, folder, edit):
    argv = ['--model', data / 'model', '--task_name', 'SST-2', '--data_dir', data]
    return [*argv, '--labels', '0,1', '--output_dir', folder / 'out', '--max_length', 16, *edit]


def write_gpt2(folder):
    tiny.save_gpt2(folder / 'model', n_positions=48)


def generate(data, folder, edit):
    (folder / 'blank.txt').write_text('\n \n')
    return ['--model_name_or_path', data / 'model', *named(edit, HERE=[folder])]


def write_transfo_xl(folder):
    """Texts, a model with their vocabulary, and a corpus with another one."""
    texts = folder / 'texts'
    corpus = toy_data.make_corpus(texts)
    block = TransfoXLLMHeadModel(tiny.transfo_xl_config(len(corpus.vocab)))
    tiny.initialized(block).save_pretrained(str(folder / 'model'), corpus.vocab)
    toy_data.make_corpus(texts, ['<unk>', '<eos>']).save_pretrained(folder / 'other')


def evaluate(data, folder, edit):
    argv = named(edit, TEXT=[data / 'texts' / 'test.txt'], OTHER=[data / 'other'])
    return ['--model_name', data / 'model', '--work_dir', folder / 'out', *argv]


def convert(data, folder, edit):
    family, target, source, *flags = edit
    argv = ['--family', family, '--to', target, CHECKPOINTS / source, folder / 'out']
    return [*argv, *flags]


def write_extracted(folder):
    tiny.save_bert(folder / 'model', 'abc', num_hidden_layers=3)
    (folder / 'input.txt').write_text('a b\nc\n')


def extract(data, folder, edit):
    (folder / 'empty.txt').touch()
    argv = ['--input_file', data / 'input.txt', '--output_file', 'x.jsonl']
    argv += [] if '--init_checkpoint' in edit else ['--model', data / 'model']
    return [*argv, *named(edit, INPUT=[data / 'input.txt'])]


MODELS = dict(
    with_rows(script, arguments, write=write)
    for script, arguments, write in (
        ('predict', use, write_classifier),
        ('ask', use, write_classifier),
        ('tag', use, write_classifier),
        ('fill', use, write_masked),
        ('info', use, write_classifier),
        ('search', search, write_masked),
        ('serve', use, write_classifier),
        ('bertology', bertology, write_classifier),
        ('generate_gpt2', generate, write_gpt2),
        ('eval_transfo_xl', evaluate, write_transfo_xl),
        ('convert_checkpoint', convert, id),
        ('extract_features', extract, write_extracted),
    )
)
