"""Training beside peers, in turn, as ratios. ``--work`` chooses:

``classifier``
    A step of fine-tuning BERT base (forward, backward, clipping, Adam with decoupled weight decay),
    in each ``--precision``. ``--mirror`` adds ours once more, with gradient checkpointing.
``pretraining``, ``gpt2``, ``transfo_xl``
    The same of BERT's pre-training, GPT-2 and Transformer-XL, which carries its memory from step to
    step; its words have the falling frequencies of a text's (Zipf).
``update``
    The optimizers alone, with the parameters of a BERT.
``samples``
    Samples for pre-training from the text of ``--input_file``, in seconds of CPU on one core,
    beside the scripts of the originals' checkouts, ``--google`` (google-research/bert) and
    ``--gluonnlp`` (dmlc/gluon-nlp, v0.10.0), from reading the text to the arrays in memory or (with
    ``--write``) in a file. Google's file format needs TensorFlow: its samples stay in memory.
``programs``
    Fine-tuning a classifier, from the command to the trained model. A turn is a process of its own.
    It imports its framework, reads and tokenizes the texts of a task, trains, evaluates the dev set
    after each epoch, and saves the model. All begin with a model of the same size. Ours is
    scripts/finetune_classifier.py. The peers' are short programs of the parts that they offer for
    this: transformers shuffles, and pads to a batch's longest text; GluonNLP puts texts of similar
    length together, as ours does. ``updates`` are the seconds of the updates alone.
"""

import functools
import importlib
import itertools
import json
import logging
import math
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time
import types
import unittest.mock
import warnings

from inference import (
    VOCAB_SIZE,
    bert_sizes,
    draw_text,
    gluonnlp_block,
    make_batch,
    original_config,
    transfo_xl_sizes,
)
from side_by_side import (
    Case,
    Contender,
    Measured,
    add_flags,
    bert_flops,
    gluon_step,
    installed,
    measure,
    neighbour,
    our_update,
    parse_shapes,
    report,
    run,
    threads,
    torch_step,
)

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
ADAM = {'learning_rate': 2e-5, 'wd': 0.01}
TORCH = ('torch', 'transformers')
ORIGINAL = ('torch', 'pytorch_pretrained_bert')
ORIGINAL_NAME = 'pytorch-pretrained-bert'

# -- steps -----------------------------------------------------------------------------------------

LANGUAGE_MODELS = 'gpt2', 'transfo_xl'

def labelled_batch(shape):
    """`make_batch`, and a label for each row."""
    import numpy as np

    return (*make_batch(VOCAB_SIZE, shape), np.random.RandomState(1).randint(0, 2, shape[0]))


def masked_batch(shape):
    """Full sequences with 15 % of their words masked, as NumPy arrays."""
    import numpy as np

    batch, length = shape
    rng = np.random.RandomState(0)
    positions = np.sort(np.argsort(rng.rand(batch, length))[:, : max(1, round(0.15 * length))])
    return (
        rng.randint(0, VOCAB_SIZE, (batch, length)),
        rng.randint(0, 2, (batch, length)),
        np.full((batch,), length),
        positions,
        rng.randint(0, VOCAB_SIZE, positions.shape),
        rng.randint(0, 2, (batch,)),
    )


def batches(options, shape):
    """The batches of a work's steps, NumPy arrays, without end."""
    if options.work == 'classifier':
        return itertools.repeat(labelled_batch(shape))
    if options.work == 'pretraining':
        return itertools.repeat(masked_batch(shape))
    segments = draw_text(options.vocab_size, *shape)  # words and labels, one after the other
    return itertools.cycle(segments if options.work == 'transfo_xl' else segments[:1])


def _our_model(options):
    if options.work == 'gpt2':
        from gpt2 import GPT2Config, GPT2LMHeadModel

        return GPT2LMHeadModel(GPT2Config(options.vocab_size, n_layer=options.layers))
    if options.work == 'transfo_xl':
        from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

        return TransfoXLLMHeadModel(TransfoXLConfig(**transfo_xl_sizes(options)))
    from bert import BertConfig, BertForPreTraining, BertForSequenceClassification

    is_classifier = options.work == 'classifier'
    head = BertForSequenceClassification if is_classifier else BertForPreTraining
    return head(BertConfig(**bert_sizes(options)))


def ours(options, precision='float32', is_mirrored=False):
    """As our scripts train it."""
    import mxnet as mx

    block, is_lm = _our_model(options), options.work in LANGUAGE_MODELS
    block.initialize()
    block.cast(precision)
    block.hybridize(static_alloc=True, static_shape=is_lm)
    settings = {**ADAM, 'multi_precision': True} if precision == 'float16' else ADAM
    update = our_update(block, 'openaiadam' if is_lm else 'bertadam', settings)
    if is_mirrored:
        block.mirror()

    def prepare(shape):
        rows, memory = batches(options, shape), [None]

        def compute():
            dtype = 'int32' if is_lm else 'float32'
            batch = [mx.nd.array(array, dtype=dtype) for array in next(rows)]
            if options.work == 'transfo_xl':
                words, labels = batch
                losses, memory[0] = block(words, memory[0], labels=labels)
                return losses.mean()
            return block(batch[0], lm_labels=batch[0]) if is_lm else block(*batch)

        return gluon_step(compute, update)

    return prepare


def gluonnlp_classifier(options, precision):
    """As GluonNLP's own script trains it."""
    import gluonnlp
    import mxnet as mx

    block = gluonnlp.model.BERTClassifier(gluonnlp_block(options), dropout=0.1)
    block.classifier.initialize(mx.init.Normal(0.02))
    loss_of, update = _gluonnlp_training(block, gluonnlp.optimizer.BERTAdam(**ADAM))

    def prepare(shape):
        batch = labelled_batch(shape)
        return gluon_step(lambda: loss_of(*map(mx.nd.array, batch)), update)

    return prepare


def _gluonnlp_training(block, optimizer):
    """The loss of a classifier's batch, and the update, of GluonNLP's script."""
    import gluonnlp
    import mxnet as mx

    block.hybridize(static_alloc=True)
    criterion = mx.gluon.loss.SoftmaxCELoss()
    criterion.hybridize(static_alloc=True)
    parameters = block.collect_params()
    trainer = mx.gluon.Trainer(parameters, optimizer, update_on_kvstore=False)
    trained = [p for p in parameters.values() if p.grad_req != 'null']

    def loss_of(words, types, length, labels):
        return criterion(block(words, types, length), labels).mean()

    def update():
        trainer.allreduce_grads()
        gluonnlp.utils.clip_grad_global_norm(trained, 1)
        trainer.update(1)

    return loss_of, update


def _torch_step(options, model, loss_of):
    """``prepare`` of torch; ``loss_of(*tensors)`` of a batch."""
    import torch

    torch.set_num_threads(threads())
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)

    def prepare(shape):
        rows = batches(options, shape)
        return torch_step(model, optimizer, lambda: loss_of(*map(torch.from_numpy, next(rows))))

    return prepare


def transformers_classifier(options, precision):
    """With torch's AdamW; in bfloat16 by autocast."""
    import torch
    import transformers

    config = transformers.BertConfig(**bert_sizes(options))
    model = transformers.BertForSequenceClassification(config)

    def loss_of(words, types, length, labels):
        mask = (torch.arange(words.shape[1]) < length[:, None]).long()
        with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bfloat16'):
            return model(words, mask, types, labels=labels).loss

    return _torch_step(options, model, loss_of)


def transformers_pretraining(options):
    """It too predicts the masked words only."""
    import torch
    import transformers

    model = transformers.BertForPreTraining(transformers.BertConfig(**bert_sizes(options)))
    cross_entropy = torch.nn.functional.cross_entropy

    def loss_of(words, types, _, positions, ids, labels):
        outputs = model.bert(words, attention_mask=torch.ones_like(words), token_type_ids=types)
        masked = outputs.last_hidden_state[torch.arange(len(words))[:, None], positions]
        scores, pairs = model.cls(masked, outputs.pooler_output)
        return cross_entropy(scores.flatten(0, 1), ids.flatten()) + cross_entropy(pairs, labels)

    return _torch_step(options, model, loss_of)


def torch_gpt2(options, library):
    """GPT-2 of transformers or of pytorch-pretrained-bert."""
    original = importlib.import_module(library)
    config = original.GPT2Config(options.vocab_size, n_layer=options.layers)
    model = original.GPT2LMHeadModel(config)
    labels_name = 'labels' if library == 'transformers' else 'lm_labels'

    def loss_of(words, _):
        outputs = model(words, **{labels_name: words})
        return getattr(outputs, 'loss', outputs)  # the original gives the loss itself

    return _torch_step(options, model, loss_of)


def original_transfo_xl(options):
    import pytorch_pretrained_bert as original
    import torch

    torch.Tensor.byte = torch.Tensor.bool  # the type of masks that today's torch wants
    model = original.TransfoXLLMHeadModel(original_config(transfo_xl_sizes(options)))
    memories = {}  # shape of the words -> what their model remembers

    def loss_of(words, labels):
        losses, memories[words.shape] = model(words, labels, memories.get(words.shape))
        return losses.mean()

    return _torch_step(options, model, loss_of)


def _classifiers(args):
    """Ours and the peers', a contender for each precision that they have."""
    contenders, peers = [], []
    for precision in args.precision:
        arguments = {'precision': precision}
        contenders.append(Contender(f'ours, {precision}', ours, arguments=arguments))
        if args.mirror:
            mirrored = {**arguments, 'is_mirrored': True}
            contenders.append(Contender(f'ours, {precision}, mirrored', ours, arguments=mirrored))
        if precision == 'float32':
            peers.append(Contender('gluonnlp', gluonnlp_classifier, ('gluonnlp',), arguments))
        if precision != 'float16':
            peers.append(
                Contender(f'torch {precision}', transformers_classifier, TORCH, arguments)
            )
    return contenders, peers


OURS = [Contender('ours', ours)]
#: steps -> layers, words, contenders
STEPS = {
    'classifier': (12, None, _classifiers),
    'pretraining': (12, None, lambda args: (
        OURS, [Contender('torch+transformers', transformers_pretraining, TORCH)],
    )),
    'gpt2': (12, 50257, lambda args: (OURS, [
        Contender('transformers', torch_gpt2, TORCH, {'library': 'transformers'}),
        Contender(ORIGINAL_NAME, torch_gpt2, ORIGINAL, {'library': 'pytorch_pretrained_bert'}),
    ])),
    'transfo_xl': (6, 267735, lambda args: (
        OURS, [Contender(ORIGINAL_NAME, original_transfo_xl, ORIGINAL)],
    )),
}  # fmt: skip


def compare_steps(args):
    layers, vocab_size, contenders = STEPS[args.work]
    args.layers, args.vocab_size = args.layers or layers, args.vocab_size or vocab_size
    is_lm = args.work in LANGUAGE_MODELS
    shapes = parse_shapes(args.shapes or ('1x128,4x128' if is_lm else '1x32,8x128,32x128'))
    args.tgt_len = max(length for _, length in shapes)
    cases = [
        Case(
            f'{batch}x{length}', (batch, length),
            batch * length if is_lm else 3 * bert_flops(args.layers, args.units, batch, length),
        )
        for batch, length in shapes
    ]  # fmt: skip
    measured = measure(*contenders(args), cases, args)
    title = f'{args.work} training step, {args.layers} layers'
    report(title, measured, args, 'tokens/s' if is_lm else 'GF/s')


# -- an update alone -------------------------------------------------------------------------------


def bert_shapes(layers, units):
    """Shapes of the parameters of a BERT with fused query, key and value."""
    shapes = [(VOCAB_SIZE, units), (2, units), (512, units), (units,), (units,)]
    for _ in range(layers):
        shapes += [(3 * units, units), (3 * units,), (units, units), (units,), (units,), (units,)]
        shapes += [(4 * units, units), (4 * units,), (units, 4 * units), (units,), (units,)]
        shapes += [(units,)]
    return shapes + [(units, units), (units,)]


def _gluon_update(optimizer):
    import mxnet as mx

    def prepare(shapes):
        weights = [mx.nd.random.normal(0, 0.02, shape=shape) for shape in shapes]
        grads = [mx.nd.random.normal(0, 1e-3, shape=shape) for shape in shapes]
        updater = mx.optimizer.get_updater(optimizer)
        indices = list(range(len(shapes)))

        def update():
            updater(indices, grads, weights)
            mx.nd.waitall()

        return update

    return prepare


def our_optimizer(options, name, **arguments):
    from model_zoo import optimizer

    return _gluon_update(getattr(optimizer, name)(**ADAM, **arguments))


def gluonnlp_optimizer(options):
    import gluonnlp

    return _gluon_update(gluonnlp.optimizer.BERTAdam(**ADAM))


def _torch_update(make):
    import torch

    torch.set_num_threads(threads())

    def prepare(shapes):
        parameters = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter) * 1e-3
        return make(parameters, lr=2e-5, weight_decay=0.01).step

    return prepare


def adamw(options):
    import torch

    return _torch_update(torch.optim.AdamW)


def original_optimizer(options, max_grad_norm):
    from pytorch_pretrained_bert.optimization import BertAdam

    warnings.simplefilter('ignore')  # torch's on the original's old calls
    logging.getLogger('pytorch_pretrained_bert').setLevel(logging.ERROR)
    make = functools.partial(BertAdam, schedule='none', max_grad_norm=max_grad_norm)
    return _torch_update(make)


def compare_updates(args):
    args.layers = args.layers or 12
    shapes = bert_shapes(args.layers, args.units)
    count = sum(map(math.prod, shapes))
    clipped = {'max_grad_norm': 1.0}
    ours = [
        Contender(label, our_optimizer, arguments={'name': name, **more})
        for label, name, more in (
            ('BERTAdam', 'BERTAdam', {}), ('BERTAdam, clipped', 'BERTAdam', clipped),
            ('OpenAIAdam', 'OpenAIAdam', {}),
        )
    ]  # fmt: skip
    original = f'{ORIGINAL_NAME} BertAdam'
    peers = [
        Contender('gluonnlp BERTAdam', gluonnlp_optimizer, ('gluonnlp',)),
        Contender('torch AdamW', adamw, ('torch',)),
        Contender(original, original_optimizer, ORIGINAL, {'max_grad_norm': -1}),
        Contender(f'{original}, clipped', original_optimizer, ORIGINAL, clipped),
    ]
    measured = measure(ours, peers, [Case('update', shapes, count)], args)
    report(f'Update of {count / 1e6:.1f} million parameters', measured, args, 'M parameters/s')


# -- samples for pre-training ----------------------------------------------------------------------


def _original(*parts):
    """A script of a checkout as a module."""
    from model_zoo.app.originals import load_script
    from model_zoo.errors import InputError

    path = pathlib.Path(*parts)
    if not path.is_file():
        raise InputError(f'no such file: {str(path)!r}; name the folder of a checkout')
    return load_script(path)


def google_original(folder):
    """Google's algorithm, from a checkout of google-research/bert."""
    flags = types.SimpleNamespace(do_whole_word_mask=False)
    type_names = 'string', 'bool', 'integer', 'float'
    defines = {f'DEFINE_{name}': lambda *args: None for name in type_names}
    # what the script takes from TensorFlow when it writes no file of its
    stand_in = types.ModuleType('tensorflow')
    stand_in.flags = types.SimpleNamespace(FLAGS=flags, **defines)
    stand_in.gfile = types.SimpleNamespace(GFile=functools.partial(open, encoding='utf-8'))
    with unittest.mock.patch.dict(sys.modules, tensorflow=stand_in):
        sys.modules.pop('tokenization', None)
        original = _original(folder, 'create_pretraining_data.py')

    def run(files, vocab_file, options, seed=12345):
        flags.do_whole_word_mask = options.whole_word_mask
        tokenizer = original.tokenization.FullTokenizer(vocab_file, do_lower_case=True)
        return original.create_training_instances(
            files, tokenizer, options.max_seq_length, options.dupe_factor, options.short_seq_prob,
            options.masked_lm_prob, options.max_predictions_per_seq, random.Random(seed),
        )  # fmt: skip

    return run


def gluonnlp_original(folder):
    """GluonNLP's algorithm, from a checkout of gluon-nlp v0.10.0."""
    import gluonnlp

    original = _original(folder, 'scripts', 'bert', 'data', 'create_pretraining_data.py')

    def run(files, vocab, options, seed=12345, path=None):
        random.seed(seed)
        tokenizer = gluonnlp.data.BERTTokenizer(vocab, lower=True)
        return original.create_training_instances((
            files, tokenizer, options.max_seq_length, options.short_seq_prob,
            options.masked_lm_prob, options.max_predictions_per_seq, options.whole_word_mask,
            vocab, options.dupe_factor, 1, None, path,
        ))  # fmt: skip

    return run


def _sample_options(options):
    from model_zoo.tasks.pretraining import SampleOptions

    known = SampleOptions.__dataclass_fields__
    return SampleOptions(**{key: value for key, value in vars(options).items() if key in known})


def _on_one_core(make_samples):
    """``prepare`` for a function that makes all samples and returns their number."""
    if hasattr(os, 'sched_setaffinity'):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return lambda files: lambda: make_samples(files)


def our_samples(options):
    from bert import BertTokenizer
    from model_zoo.tasks.pretraining import Corpus, SampleMaker
    from model_zoo.tasks.pretraining.files import write_shard

    vocab = BertTokenizer(options.vocab).vocab

    def make_samples(files):
        corpus = Corpus(files)
        # a new tokenizer: this one's memory of words would make it faster than it is
        maker = SampleMaker(corpus, BertTokenizer.from_vocab(vocab), _sample_options(options))
        samples = maker.make(0, corpus.num_bytes, 12345)
        if options.write:
            write_shard(os.path.join(options.folder, 'ours.npz'), samples, vocab)
        return samples.count

    return _on_one_core(make_samples)


def gluonnlp_samples(options):
    from model_zoo.tasks.pretraining.files import read_lengths
    from model_zoo.tokenization.vocab import load_vocab

    make, vocab = gluonnlp_original(options.gluonnlp), load_vocab(options.vocab)
    path = os.path.join(options.folder, 'gluonnlp.npz')

    def make_samples(files):
        if not options.write:
            return len(make(files, vocab, _sample_options(options))[4])
        make(files, vocab, _sample_options(options), path=path)
        return len(read_lengths(path))

    return _on_one_core(make_samples)


def google_samples(options):
    make = google_original(options.google)
    return _on_one_core(lambda files: len(make(files, options.vocab, _sample_options(options))))


def compare_samples(args):
    from model_zoo.tasks.pretraining import Corpus, matching_files

    files = matching_files(args.input_file)
    makers = {'google': google_samples, 'gluonnlp': gluonnlp_samples}
    peers = [Contender(name, make) for name, make in makers.items() if getattr(args, name)]
    case = Case('data', files, 0)
    args.cpu_time = True
    measured = measure([Contender('ours', our_samples)], peers, [case], args, warm=False)
    # each makes its own number of samples
    measured = [entry._replace(case=case._replace(work=entry.answer)) for entry in measured]
    size = Corpus(files).num_bytes / 2**20
    title = f'Samples of {args.max_seq_length} tokens, {args.dupe_factor} times {size:.1f} MB'
    report(f'{title} of text, on one core', measured, args, 'samples/s')


# -- whole programs --------------------------------------------------------------------------------

JOB = 'job.json'  # what the peers begin with
PEER_FLAG = '--be'
RATE = 5e-5


def prepare_programs(args, folder):
    """Write what the peers begin with; returns the number of texts that are trained on."""
    from model_zoo import open_model
    from model_zoo.tasks.classification_data import get_task, read_examples

    task = get_task(args.task_name)
    block, tokenizer = open_model(
        args.bert_model, 'classification', dataset_name=args.bert_dataset,
        num_labels=task.num_labels,
    )[:2]  # fmt: skip
    block.save_pretrained(folder / 'model', tokenizer, format='huggingface')
    job = {
        **{key: getattr(args, key) for key in ('batch_size', 'max_len', 'epochs')},
        'model': str(folder / 'model'), 'num_labels': task.num_labels,
        'vocab': tokenizer.vocab.to_json(), 'do_lower_case': tokenizer.do_lower_case,
        'layers': block.config.num_hidden_layers, 'units': block.config.hidden_size,
    }  # fmt: skip
    for segment in ('train', 'dev'):
        job[segment] = [
            (example.text_a, example.text_b, task.label_id(example.label))
            for example in read_examples(task, args.data_dir, segment)
        ]
    (folder / JOB).write_text(json.dumps(job), 'utf-8')
    return args.epochs * len(job['train'])


def our_flags(args, output, precision='float32'):
    """The flags of finetune_classifier.py."""
    return [
        '--dtype', precision, '--task_name', args.task_name, '--bert_model', args.bert_model,
        '--bert_dataset', args.bert_dataset, '--data_dir', args.data_dir,
        '--optimizer', 'openaiadam', '--lr', RATE, '--epochs', args.epochs,
        '--batch_size', args.batch_size, '--max_len', args.max_len, '--output_dir', output,
        '--overwrite_output_dir',
    ]  # fmt: skip


def transformers_program(job, folder, precision='float32'):
    """Train as examples of transformers do; returns the seconds of the updates."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
    )

    tokenizer = AutoTokenizer.from_pretrained(job['model'])
    model = AutoModelForSequenceClassification.from_pretrained(job['model'])
    collate = DataCollatorWithPadding(tokenizer)

    def loader(segment, **options):
        texts, pairs, labels = zip(*job[segment])
        pairs = None if pairs[0] is None else list(pairs)
        made = tokenizer(list(texts), pairs, truncation=True, max_length=job['max_len'])
        rows = [
            {**{key: made[key][row] for key in made}, 'labels': label}
            for row, label in enumerate(labels)
        ]
        return torch.utils.data.DataLoader(rows, collate_fn=collate, **options)

    train = loader('train', batch_size=job['batch_size'], shuffle=True)
    dev = loader('dev', batch_size=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    cast = torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bfloat16')

    def train_epoch():
        model.train()
        for batch in train:
            with cast:
                loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()
            loss.item()

    def count_right():
        model.eval()
        with torch.no_grad(), cast:
            return sum(
                (model(**batch).logits.argmax(-1) == batch['labels']).sum().item() for batch in dev
            )

    seconds = _train(job, train_epoch, count_right)
    model.save_pretrained(folder / 'transformers')
    return seconds


def gluonnlp_program(job, folder):
    """Train as GluonNLP's own script does; returns the seconds of the updates."""
    import gluonnlp as nlp
    import mxnet as mx

    vocab = nlp.vocab.BERTVocab.from_json(job['vocab'])
    bert = gluonnlp_block(types.SimpleNamespace(**job), vocab)
    model = nlp.model.BERTClassifier(bert, job['num_labels'], dropout=0.1)
    model.classifier.initialize(mx.init.Normal(0.02))
    optimizer = nlp.optimizer.BERTAdam(learning_rate=RATE, wd=0.01)
    loss_of, update = _gluonnlp_training(model, optimizer)
    tokenizer = nlp.data.BERTTokenizer(vocab, lower=job['do_lower_case'])
    batchify = nlp.data.batchify
    collate = batchify.Tuple(
        batchify.Pad(axis=0, pad_val=vocab[vocab.padding_token]), batchify.Stack('float32'),
        batchify.Pad(axis=0, pad_val=0), batchify.Stack('int32'),
    )  # fmt: skip

    def loader(segment, **options):
        is_pair = job[segment][0][1] is not None
        transform = nlp.data.BERTSentenceTransform(
            tokenizer, job['max_len'], vocab=vocab, pad=False, pair=is_pair
        )
        rows = [
            (*transform((text, pair) if is_pair else (text,)), label)
            for text, pair, label in job[segment]
        ]
        if segment == 'train':
            options['batch_sampler'] = nlp.data.FixedBucketSampler(
                [len(row[0]) for row in rows], batch_size=job['batch_size'], num_buckets=10,
                ratio=0, shuffle=True,
            )  # fmt: skip
        rows = mx.gluon.data.SimpleDataset(rows)
        return mx.gluon.data.DataLoader(rows, batchify_fn=collate, **options)

    def on_cpu(batch):  # from memory that processes share
        return [array.as_in_context(mx.cpu()) for array in batch]

    train, dev = loader('train'), loader('dev', batch_size=8)

    def train_epoch():
        for words, length, segments, label in map(on_cpu, train):
            with mx.autograd.record():
                loss = loss_of(words, segments, length, label)
            loss.backward()
            update()
            loss.asscalar()

    def count_right():
        return sum(
            (model(words, segments, length).asnumpy().argmax(-1) == label.asnumpy()).sum()
            for words, length, segments, label in map(on_cpu, dev)
        )

    seconds = _train(job, train_epoch, count_right)
    model.save_parameters(str(folder / 'gluonnlp.params'))
    return seconds


def _train(job, train_epoch, count_right):
    """The seconds of the updates; the dev set is evaluated after each epoch."""
    seconds = 0
    for _ in range(job['epochs']):
        begin = time.perf_counter()
        train_epoch()
        seconds += time.perf_counter() - begin
        print(f'accuracy {count_right() / len(job["dev"]):.3f}', flush=True)
    return seconds


BFLOAT16 = {'precision': 'bfloat16'}
PROGRAMS = [
    Contender('ours', our_flags),
    Contender('ours, bfloat16', our_flags, arguments=BFLOAT16),
]
PEERS = [
    Contender('gluonnlp', gluonnlp_program, ('gluonnlp',)),
    Contender('transformers', transformers_program, TORCH),
    Contender('transformers, bfloat16', transformers_program, TORCH, BFLOAT16),
]


def be_peer(name, folder):
    """Be a peer's process; the seconds of its updates are left in a file."""
    folder = pathlib.Path(folder)
    job = _read(folder / JOB)
    [peer] = [peer for peer in PEERS if peer.name == name]
    seconds = peer.make(job, folder, **peer.arguments)
    (folder / f'{name}.json').write_text(json.dumps(seconds), 'utf-8')


def _read(path):
    return json.loads(path.read_text('utf-8'))


def turn(contender, args, folder):
    """Seconds of the clock, of the CPU, and of the updates, of one program."""
    from model_zoo.errors import ZooError

    root = pathlib.Path(contender.checkout or SCRIPTS.parent)
    is_ours = contender.make is our_flags
    if is_ours:
        output = folder / 'output'
        flags = our_flags(args, output, **contender.arguments)
        command = [root / 'scripts' / 'finetune_classifier.py', *flags]
    else:
        command = [__file__, PEER_FLAG, contender.name, folder]
    before, begin = cpu_of_children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *map(str, command)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(root), 'USE_TF': '0', **contender.environment},
    )  # fmt: skip
    clock, cpu = time.perf_counter() - begin, cpu_of_children() - before
    if done.returncode:
        raise ZooError(f'{contender.name} ended with {done.returncode}: {done.stderr[-2000:]}')
    if is_ours:
        return clock, cpu, _read(output / 'results.json')['training']['seconds']
    return clock, cpu, _read(folder / f'{contender.name}.json')


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare_programs(args):
    present = installed(PROGRAMS, PEERS, args)
    turns = {contender.name: [] for contender in present}
    with tempfile.TemporaryDirectory() as folder, neighbour(args.neighbour):
        texts = prepare_programs(args, pathlib.Path(folder))
        for done in range(args.rounds):
            for contender in present if done % 2 == 0 else reversed(present):
                turns[contender.name].append(turn(contender, args, pathlib.Path(folder)))
    measured = []
    for name, records in turns.items():
        clock, cpu, _ = zip(*records)
        measured.append(Measured(Case('program', None, texts), name, clock, cpu, 0, None))
    for name, records in () if args.cpu_time else turns.items():  # whose CPU isn't known
        *_, updates = zip(*records)
        measured.append(Measured(Case('updates', None, texts), name, updates, updates, 0, None))
    title = f'{args.task_name}, {args.bert_model}, {args.epochs} epochs'
    report(title, measured, args, 'texts/s')


#: work -> what compares it, rounds
WORKS = {
    **dict.fromkeys(STEPS, (compare_steps, 10)), 'update': (compare_updates, 7),
    'samples': (compare_samples, 3), 'programs': (compare_programs, 3),
}  # fmt: skip


def main(argv=None):
    from model_zoo.errors import InputError

    parser = add_flags(__doc__.split('. ')[0], rounds=None, seconds=90)
    add = parser.add_argument
    add('--work', default='classifier', choices=WORKS)
    add('--shapes', help='of steps: batch x length')
    add('--layers', type=int, help='default: 12, and 6 of Transformer-XL')
    add('--units', type=int, default=768, help='of BERT')
    add('--precision', nargs='+', default=['float32'], choices=['float32', 'bfloat16', 'float16'],
        help='of a classifier; float16 is for GPUs, the CPU computes its products in float32')
    add('--mirror', action='store_true', help='a classifier also with gradient checkpointing')
    add('--vocab_size', type=int, help="default: GPT-2's, and wikitext-103's")
    add('--mem_len', type=int, default=160, help='positions that Transformer-XL remembers')
    of_samples = parser.add_argument_group('samples')
    add = of_samples.add_argument
    add('--input_file', help='text; wildcards, separated by commas')
    add('--vocab', help='vocab.txt of an uncased BERT')
    add('--google', metavar='DIR', help='checkout of google-research/bert')
    add('--gluonnlp', metavar='DIR', help='checkout of dmlc/gluon-nlp, v0.10.0')
    add('--max_seq_length', type=int, default=128)
    add('--max_predictions_per_seq', type=int, default=20)
    add('--dupe_factor', type=int, default=5)
    add('--whole_word_mask', action='store_true')
    add('--write', action='store_true', help='ours and GluonNLP write a file, too')
    of_programs = parser.add_argument_group('programs')
    add = of_programs.add_argument
    add('--task_name', default='SST', help='a task of sentences or pairs with classes')
    add('--data_dir', default=str(SCRIPTS / 'demo_data'), help="of the task's TSV files")
    add('--bert_model', default='bert_6_384_12')
    add('--bert_dataset', default='all_minilm_l6_v2')
    add('--epochs', type=int, default=3)
    add('--batch_size', type=int, default=32)
    add('--max_len', type=int, default=128, help='in tokens, special ones included')
    args = parser.parse_args(argv)
    compare, rounds = WORKS[args.work]
    args.rounds = rounds if args.rounds is None else args.rounds
    if args.rounds < 1:
        raise InputError(f'--rounds {args.rounds}: give 1 or more')
    if args.work == 'samples' and not (args.input_file and args.vocab):
        raise InputError('--work samples: give --input_file and --vocab')
    compare(args)


if __name__ == '__main__':
    if sys.argv[1:2] == [PEER_FLAG]:
        be_peer(*sys.argv[2:])
    else:
        run(main)
