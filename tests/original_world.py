"""What the originals' command lines find: tiny models by their names, and tiny data sets.

The folders are those of `original_commands.json`, below a folder in the place of ``/path/to``.
"""

import json
import shutil
import string

import numpy as np
import tiny
import toy_data
from variant_models import make_roberta

from bert import (
    BertConfig,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertTokenizer,
)
from export import export_block
from gpt import OpenAIGPTConfig, OpenAIGPTDoubleHeadsModel, OpenAIGPTTokenizer
from model_zoo.pretrained import get_entry, resolve
from model_zoo.tasks.classification_data import get_task
from model_zoo.tasks.pretraining import Samples, write_shard, write_tfrecords
from transfo_xl import TransfoXLCorpus, TransfoXLLMHeadModel

__all__ = ['write_models', 'write_world']

#: length of the samples for pre-training, and masks of each
LENGTH, MASKS = 12, 2
TASKS = 'CoLA', 'SST', 'MRPC', 'STS-B', 'QQP', 'MNLI', 'RTE', 'XNLI'
NAMES = (
    ('bert-base-uncased', None),
    ('bert-large-uncased', None),
    ('bert-large-uncased-whole-word-masking', None),
    ('bert-large-cased-whole-word-masking', None),
    ('bert_12_768_12', 'wiki_cn_cased'),
    ('bert_24_1024_16', None),
)
WORDS = [*tiny.SPECIAL, *string.ascii_lowercase, 'what', 'colour', 'is', 'it', '.', '?']


def config(**fields):
    return tiny.bert_config(
        len(WORDS), hidden_size=8, num_hidden_layers=1, intermediate_size=16,
        max_position_embeddings=128, **fields,
    )  # fmt: skip


def save(block, folder, tokenizer):
    block.initialize()
    block.save_pretrained(str(folder), tokenizer)


def write_models(root):
    """A cache of weights, for MXNET_HOME."""
    folder = root / 'models'
    folder.mkdir()
    (root / 'vocab.txt').write_text('\n'.join(WORDS) + '\n')
    save(BertForPreTraining(config()), root / 'bert', BertTokenizer(root / 'vocab.txt'))
    for name, dataset in NAMES:
        place = folder / get_entry(*resolve(name, dataset)).full_name
        if not place.exists():
            place.symlink_to(root / 'bert')

    roberta, tokenizer = make_roberta(root / 'roberta')
    place = 'roberta_12_768_12', 'openwebtext_ccnews_stories_books_cased'
    save(roberta, folder / get_entry(*resolve(*place)).full_name, tokenizer)

    toy_data.write_stories(root)
    tokenizer = OpenAIGPTTokenizer(root / 'vocab.json', root / 'merges.txt')
    size = {'n_embd': 8, 'n_layer': 1, 'n_head': 2}
    sizes = tiny.decoder_config(OpenAIGPTConfig, len(tokenizer), n_positions=64, **size)
    place = folder / get_entry(*resolve('openai-gpt', None)).full_name
    save(OpenAIGPTDoubleHeadsModel(sizes), place, tokenizer)

    place = folder / get_entry(*resolve('gpt2', None)).full_name
    tiny.save_gpt2(place, n_positions=48, **size)

    texts = root / 'texts'
    texts.mkdir()
    for name in ('train', 'valid', 'test'):
        (texts / f'{name}.txt').write_text('a b c d e f\nc d a\n' * 9)
    corpus = TransfoXLCorpus(special=['<eos>'])
    corpus.build_corpus(texts, 'wt2')
    sizes = tiny.transfo_xl_config(len(corpus.vocab), div_val=2, n_layer=1)
    place = folder / get_entry(*resolve('transfo-xl-wt103', None)).full_name
    save(TransfoXLLMHeadModel(sizes), place, corpus.vocab)
    shutil.copy(texts / 'test.txt', place)


def write_task(folder, task):
    """The files of one of the classifier's tasks."""
    folder.mkdir(parents=True)
    for segment in task.segments:
        is_test = segment.startswith('test')
        layout = next(each for each in task.layouts if is_test or each.label is not None)
        labels = ['1.5', '4.0'] if task.regression else list(task.labels)
        rows = []
        if layout.header:
            columns = [*layout.text, *([] if is_test else [layout.label])]
            rows.append(['index', *columns])
        for number in range(8 if segment == 'train' else 4):
            texts = [' '.join('abcdefgh'[number % 5 :][:4]) + ' .' for _ in layout.text]
            label = labels[number % len(labels)]
            if layout.header:
                rows.append([str(number), *texts, *([] if is_test else [label])])
            else:
                row = ['x'] * layout.width
                for column, text in zip((*layout.text, layout.label), (*texts, label)):
                    row[column] = text
                rows.append(row)
        text = '\n'.join('\t'.join(row) for row in rows)
        (folder / task.files[segment][0]).write_text(text + '\n')


def write_world(world, fixtures):
    """The data sets, and models that are given by their paths."""
    checkpoint = fixtures / 'checkpoints' / 'bert_tensorflow'
    for name in ('uncased_L-12_H-768_A-12', 'uncased_L-24_H-1024_A-16', 'chinese_L-12_H-768_A-12'):
        shutil.copytree(checkpoint, world / 'bert' / name)
    for name in TASKS:
        task = get_task(name)
        place = world / 'glue' / task.folders[0]
        write_task(place, task)
    shutil.copytree(world / 'glue' / 'XNLI', world / 'xnli')
    (world / 'glue_data').symlink_to(world / 'glue')

    questions = world / 'SQUAD'
    questions.mkdir()
    toy_data.write_questions(questions)
    for name in ('train', 'dev'):
        for version in (1, 2):
            target = questions / f'{name}-v{version}{".1" if version == 1 else ".0"}.json'
            _shorten(questions / f'{name}-{version}.json', target)

    for name, data in (('SWAG', 'data'), ('RocStories', '')):
        (world / name / data).mkdir(parents=True)
    toy_data.write_situations(world / 'SWAG' / 'data')
    stories = world / 'RocStories'
    toy_data.write_stories(stories)
    for part, name in (('val', 'train'), ('test', 'eval')):
        target = stories / f'cloze_test_{part}__spring2016 - cloze_test_ALL_{part}.csv'
        (stories / f'{name}.csv').rename(target)

    here = world / 'here'  # the current folder
    (here / 'tmp').mkdir(parents=True)
    text = (fixtures / 'pretraining' / 'sample_text.txt').read_text('utf-8')
    for place in ('sample_text.txt', 'my_corpus.txt', 'folder1/a.txt', 'folder2/a.txt',
                  'dev_folder/a.txt'):  # fmt: skip
        (here / place).parent.mkdir(exist_ok=True)
        (here / place).write_text(text, 'utf-8')
    (here / 'tmp' / 'input.txt').write_text('a b c ||| d e\nf g\n')
    google = BertTokenizer(checkpoint / 'vocab.txt')
    write_tfrecords(
        [str(here / 'tmp' / 'tf_examples.tfrecord')], [samples(google)], LENGTH, MASKS
    )
    tokenizer = BertTokenizer(world.parent / 'root' / 'vocab.txt')
    for place in (here / 'out', here / 'training', world / 'generated/samples/train',
                  world / 'generated/samples/dev'):  # fmt: skip
        place.mkdir(parents=True)
        write_shard(str(place / 'part-000.npz'), samples(tokenizer), tokenizer.vocab)

    output = here / 'output_dir'
    output.mkdir()
    classifier = BertForSequenceClassification(config(), num_labels=2)
    answers = BertForQuestionAnswering(config())
    for block, names in ((classifier, ('model_bert_MRPC_4', 'sst')), (answers, ('net',))):
        block.initialize()
        for name in names:
            block.save_parameters(str(output / f'{name}.params'))
    sizes = BertConfig.from_json_file(str(checkpoint / 'bert_config.json'))
    trained = BertForSequenceClassification(sizes, num_labels=2)
    save(trained, world / 'fine' / 'tuned' / 'classifier', google)
    (world / 'saved').mkdir()
    classifier.save_parameters(str(world / 'saved' / 'ckpt.params'))
    for name in ('MRPC', 'SST'):
        export_block(classifier, str(output), f'model_bert_{name}_quantized_customize')
    export_block(answers, str(output), 'model_bert_squad_quantized_customize')


def _shorten(path, target):
    content = json.loads(path.read_text())
    content['data'][0]['paragraphs'] = content['data'][0]['paragraphs'][:12]
    target.write_text(json.dumps(content))


def samples(tokenizer, count=16):
    """Samples for pre-training."""
    vocab, rng = tokenizer.vocab, np.random.default_rng(0)
    made = Samples.empty(count, LENGTH, MASKS)
    for array in made:
        array[...] = 0
    made.input_ids[:] = rng.integers(5, len(vocab), (count, LENGTH))
    made.input_ids[:, 0] = vocab[vocab.cls_token]
    made.segment_ids[:, 6:] = 1
    made.masked_lm_positions[:] = [2, 8]
    made.masked_lm_ids[:] = rng.integers(5, len(vocab), (count, MASKS))
    made.masked_lm_weights[:] = 1
    made.next_sentence_labels[::2] = 1
    made.valid_lengths[:] = LENGTH
    return made
