"""Fine-tuning a classifier, from the command to the trained model: ours beside installed peers'.

A turn is a process of its own. It imports its framework, reads and tokenizes the texts of a task,
trains, evaluates the dev set after each epoch, and saves the model. All begin with a model of the
same size. Ours is scripts/finetune_classifier.py. The peers' are short programs of the parts that
they offer for this: transformers shuffles, and pads to a batch's longest text; GluonNLP puts texts
of similar length together, as ours does. ``updates`` are the seconds of the updates alone.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from side_by_side import Case, Contender, Measured, add_flags, present_ones, report, run

HERE = pathlib.Path(__file__).resolve().parent
JOB = 'job.json'  # what the peers begin with
PEER_FLAG = '--be'
ADAM = {'learning_rate': 5e-5, 'wd': 0.01}


def prepare(args, folder):
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
        'sizes': {
            'num_layers': block.config.num_hidden_layers, 'units': block.config.hidden_size,
            'embed_size': block.config.hidden_size, 'hidden_size': block.config.intermediate_size,
            'num_heads': block.config.num_attention_heads,
        },
    }  # fmt: skip
    for segment in ('train', 'dev'):
        job[segment] = [
            (each.text_a, each.text_b, task.label_id(each.label))
            for each in read_examples(task, args.data_dir, segment)
        ]
    (folder / JOB).write_text(json.dumps(job), 'utf-8')
    return args.epochs * len(job['train'])


def ours(args, output, precision='float32'):
    """The flags of finetune_classifier.py."""
    return [
        '--dtype', precision, '--task_name', args.task_name, '--bert_model', args.bert_model,
        '--bert_dataset', args.bert_dataset, '--data_dir', args.data_dir,
        '--optimizer', 'openaiadam', '--lr', ADAM['learning_rate'], '--epochs', args.epochs,
        '--batch_size', args.batch_size, '--max_len', args.max_len, '--output_dir', output,
        '--overwrite_output_dir',
    ]  # fmt: skip


def transformers(job, folder, precision='float32'):
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
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=ADAM['learning_rate'], weight_decay=ADAM['wd']
    )
    cast = torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bfloat16')
    seconds = 0
    for _ in range(job['epochs']):
        model.train()
        begin = time.perf_counter()
        for batch in train:
            with cast:
                loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
        seconds += time.perf_counter() - begin
        model.eval()
        with torch.no_grad(), cast:
            right = sum(
                (model(**batch).logits.argmax(-1) == batch['labels']).sum().item() for batch in dev
            )
        print(f'accuracy {right / len(job["dev"]):.3f}', flush=True)
    model.save_pretrained(folder / 'transformers')
    return seconds


def gluonnlp(job, folder):
    """Train as GluonNLP's own script does; returns the seconds of the updates."""
    import gluonnlp as nlp
    import mxnet as mx

    vocab = nlp.vocab.BERTVocab.from_json(job['vocab'])
    bert, _ = nlp.model.get_model(
        'bert_12_768_12', vocab=vocab, pretrained=False, use_decoder=False, use_classifier=False,
        hparam_allow_override=True, **job['sizes'],
    )  # fmt: skip
    model = nlp.model.BERTClassifier(bert, job['num_labels'], dropout=0.1)
    model.initialize(mx.init.Normal(0.02))
    model.hybridize(static_alloc=True)
    criterion = mx.gluon.loss.SoftmaxCELoss()
    criterion.hybridize(static_alloc=True)
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

    train, dev = loader('train'), loader('dev', batch_size=8)
    parameters = model.collect_params()
    trainable = [each for each in parameters.values() if each.grad_req != 'null']
    trainer = mx.gluon.Trainer(
        parameters, nlp.optimizer.BERTAdam(**ADAM), update_on_kvstore=False
    )
    seconds = 0
    for _ in range(job['epochs']):
        begin = time.perf_counter()
        for batch in train:
            words, length, types, label = (each.as_in_context(mx.cpu()) for each in batch)
            with mx.autograd.record():
                loss = criterion(model(words, types, length), label).mean()
            loss.backward()
            trainer.allreduce_grads()
            nlp.utils.clip_grad_global_norm(trainable, 1)
            trainer.update(1)
            loss.asscalar()
        seconds += time.perf_counter() - begin
        metric = mx.metric.Accuracy()
        for batch in dev:
            words, length, types, label = (each.as_in_context(mx.cpu()) for each in batch)
            metric.update([label], [model(words, types, length)])
        print(f'accuracy {metric.get()[1]:.3f}', flush=True)
    model.save_parameters(str(folder / 'gluonnlp.params'))
    return seconds


BFLOAT16 = {'arguments': {'precision': 'bfloat16'}}
OURS = [Contender('ours', ours), Contender('ours, bfloat16', ours, **BFLOAT16)]
PEERS = [
    Contender('gluonnlp', gluonnlp, ('gluonnlp',)),
    Contender('transformers', transformers, ('torch', 'transformers')),
    Contender('transformers, bfloat16', transformers, ('torch', 'transformers'), **BFLOAT16),
]


def be_peer(name, folder):
    """Be a peer's process; the seconds of its updates are left in a file."""
    folder = pathlib.Path(folder)
    job = _read(folder / JOB)
    [peer] = [each for each in PEERS if each.name == name]
    seconds = peer.make(job, folder, **peer.arguments)
    (folder / f'{name}.json').write_text(json.dumps(seconds), 'utf-8')


def _read(path):
    return json.loads(path.read_text('utf-8'))


def turn(contender, args, folder):
    """Seconds of the clock, of the CPU, and of the updates, of one program."""
    from model_zoo.errors import ZooError

    root = pathlib.Path(contender.checkout or HERE.parent.parent)
    is_ours = contender.make is ours
    if is_ours:
        output = folder / 'output'
        flags = ours(args, output, **contender.arguments)
        command = [root / 'scripts' / 'finetune_classifier.py', *flags]
    else:
        command = [__file__, PEER_FLAG, contender.name, folder]
    before, begin = cpu_of_children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *map(str, command)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, env={**os.environ, 'PYTHONPATH': str(root), 'USE_TF': '0'},
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


def main(argv=None):
    parser = add_flags(__doc__.split('\n\n')[0], rounds=3)
    add = parser.add_argument
    add('--task_name', default='SST', help='a task of sentences or pairs with classes')
    add('--data_dir', default=str(HERE.parent / 'demo_data'), help="of the task's TSV files")
    add('--bert_model', default='bert_6_384_12')
    add('--bert_dataset', default='all_minilm_l6_v2')
    add('--epochs', type=int, default=3)
    add('--batch_size', type=int, default=32)
    add('--max_len', type=int, default=128, help='in tokens, special ones included')
    args = parser.parse_args(argv)
    present = present_ones(OURS, PEERS, args.checkout)
    turns = {contender.name: [] for contender in present}
    with tempfile.TemporaryDirectory() as folder:
        texts = prepare(args, pathlib.Path(folder))
        for done in range(args.rounds):
            for contender in present if done % 2 == 0 else reversed(present):
                turns[contender.name].append(turn(contender, args, pathlib.Path(folder)))
    title = f'{args.task_name}, {args.bert_model}, {args.epochs} epochs'
    report(title, list(measured_of(turns, texts, args.cpu_time)), args.json, 'texts/s')


def measured_of(turns, texts, cpu):
    """A case of whole programs, and one of their updates, whose CPU isn't known."""
    for name, found in turns.items():
        clock, of_cpu, _ = zip(*found)
        case = Case('program', None, texts)
        yield Measured(case, name, clock, of_cpu, 0, None, 'cpu' if cpu else 'clock')
    for name, found in () if cpu else turns.items():
        *_, updates = zip(*found)
        yield Measured(Case('updates', None, texts), name, updates, updates, 0, None)


if __name__ == '__main__':
    if sys.argv[1:2] == [PEER_FLAG]:
        be_peer(*sys.argv[2:])
    else:
        run(main)
