"""Fine-tune BERT for the classification or regression of sentences and sentence pairs.

    python finetune_classifier.py --task_name MRPC --batch_size 32 --epochs 3 --lr 2e-5
    python finetune_classifier.py --task_name custom --train_file train.tsv --dev_file dev.tsv \\
        --text_columns text --label_column label

Flags and defaults are the same as in GluonNLP 0.10's script of this name. ``--output_dir``
receives the log, ``results.json``, ``curves.png``, the parameters after the last epochs and the
best one, ``best_model/`` for ``BertForSequenceClassification.from_pretrained``, the predictions on
the test set in GLUE's form with their probabilities beside them, and checkpoints for ``--resume``.

    python finetune_classifier.py --task_name MRPC --do_predict --bert_model output_dir/best_model

predicts the test set with a trained model and evaluates nothing; besides the other files it writes
``test_results.tsv`` as Google's run_classifier.py does, with the probabilities of the classes, a
line per sample.
"""

import logging
import sys

from model_zoo.app import (
    About,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Teacher,
    Training,
    add_calibration_arguments,
    add_comm_backend_argument,
    add_custom_task_arguments,
    add_distillation_arguments,
    add_inference_arguments,
    add_originals,
    add_training_arguments,
    calibrate,
    check_at_least_one,
    check_calibration_arguments,
    check_distillation_arguments,
    check_inference_arguments,
    check_labels,
    check_task_choice,
    check_training_arguments,
    cli,
    convert_originals,
    describe,
    forward_of,
    job_of,
    load_exported,
    make_task,
    make_task_model,
    name_labels,
)
from model_zoo.errors import InputError
from model_zoo.tasks.classification import (
    ClassifierEvaluator,
    ClassifierFeatures,
    TaskSets,
    find_file,
    has_segment,
    list_tasks,
    write_class_probabilities,
    write_predictions,
)
from model_zoo.training.objective import mean_over_examples
from model_zoo.training.workers import make_workers

logger = logging.getLogger('finetune_classifier')

# What may differ when a training is resumed: where the files are.
PLACES = ('data_dir', 'train_file', 'dev_file', 'test_file', 'vocab_file', 'do_eval')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    group = parser.add_argument_group('task')
    add = group.add_argument
    add('--task_name', required=True, help=f'one of {", ".join(list_tasks())}, or custom')
    add('--data_dir', help="folder of the task's TSV files; default: GluonNLP downloads them")
    add_custom_task_arguments(group)
    add('--max_len', type=int, default=128, help='in tokens, special ones included')
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add(
        '--do_lower_case', type=cli.boolean, nargs='?', const=True,
        help='whether to lower-case the texts; default: what the vocabulary is for',
    )  # fmt: skip
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    ModelChoice.add_checkpoint_arguments(parser)
    add_training_arguments(parser)
    add_comm_backend_argument(parser)
    add_inference_arguments(parser)
    add_calibration_arguments(parser, num_batches=5)
    add_distillation_arguments(parser)
    parser.add_argument(
        '--do_predict',
        type=cli.boolean,
        nargs='?',
        const=True,
        default=False,
        help='write test_results.tsv of the test set, too: a line a sample, a column a class; '
        'alone: --only_inference on the test set',
    )
    parser.add_argument(
        '--do_eval', type=cli.boolean, nargs='?', const=True,
        help='evaluate, as a training does in any case; alone: --only_inference',
    )  # fmt: skip
    add_originals(parser, 'finetune_classifier')
    args = parser.parse_args(argv)
    convert_originals(args, 'finetune_classifier')
    args.only_inference |= args.only_calibration
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_inference_arguments(args)
    check_calibration_arguments(args)
    check_distillation_arguments(args, trains=not args.only_inference)
    check_at_least_one(args, 'round_to')
    check_task_choice(args, trains=not args.only_inference)


def check_data(args, task):
    """Raise InputError before weights are loaded, where the sets are missing that are needed."""
    if args.data_dir is None and not task.names_its_files:
        return  # GluonNLP's, which are downloaded
    needed = ('train', *task.dev_segments)
    if args.only_inference:
        usable = [name for name in task.segments if has_segment(task, args.data_dir, name)]
        needed = () if usable else task.dev_segments
    for segment in needed:
        find_file(task, args.data_dir, segment)


def make_deployed(args, task, ctx):
    """An exported model as a function like the classifier."""
    block = load_exported(args.model_prefix, args.max_len, ctx)

    def model(words, token_types, valid_length):
        result = block(words, token_types, valid_length)
        shape = getattr(result, 'shape', None)  # None of a list: a model with several outputs
        if shape != (words.shape[0], task.num_labels):
            found = f'{len(result)} outputs' if shape is None else f'outputs of shape {shape}'
            raise InputError(
                f"'{args.model_prefix}-symbol.json' gives {found} for {words.shape[0]} samples; "
                f'{task.name} needs {task.num_labels} numbers each: was it exported for another '
                'task?'
            )
        return result

    return model


def train(run, title, task, model, tokenizer, sets, evaluator, teacher=None):
    args = run.args
    _, features, loader = sets.get('train')
    # fail on bad dev and test sets before the training
    for segment in (*task.dev_segments, *filter(sets.has, task.test_segments)):
        sets.get(segment)
    values = (part for each in features for part in each.content)
    data = describe(len(features), 'training examples', values)
    place = 'train_file' if args.train_file else 'data_dir'

    def loss(batch):
        return model(*batch.inputs, batch.labels)

    def save(folder):
        save_model(folder, task, model, tokenizer)

    objective, job = mean_over_examples(loss), {}
    if teacher is not None:
        objective, job = teacher.objective(model), {'teacher': teacher.description}
    run.train(
        Training(f'{task.name}, {title}', model, loader, objective),
        Score(task.primary_metric, evaluator.evaluate),
        Outcome(
            save,
            evaluator.predict,
            {'task': task.name},
            evaluator.examine,
            About(
                'text-pair-classification' if task.is_pair else 'text-classification',
                title,
                {name: len(sets.get(name)[0]) for name in task.segments if sets.has(name)},
                labels=task.labels,
            ),
        ),
        job_of(args, PLACES, do_predict=False, **{place: data}, **job),
    )


def save_model(folder, task, model, tokenizer):
    """Save the model with the names of its classes, as transformers writes them."""
    name_labels(model, task.name, None if task.regression else task.labels)
    if task.regression:
        model.config.extras['problem_type'] = 'regression'
    model.save_pretrained(folder, tokenizer)


def quantize_model(run, task, model, sets, segments, make_evaluator):
    """``--only_calibration``: write the model in INT8."""
    if not segments:
        raise InputError('--only_calibration: there is no dev set to calibrate with')
    calibrate(
        run, run.args, model, sets.get(segments[0])[2],
        lambda forward: make_evaluator(forward).evaluate(),
        task.name, task.primary_metric,
    )  # fmt: skip


def main(argv=None):
    args = parse_arguments(argv)
    choice = ModelChoice(args, family='bert')
    task = make_task(args, args.init_checkpoint or args.bert_model)
    check_data(args, task)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, task.name, 'bert', workers, trains=not args.only_inference)
    teacher = None if args.teacher is None else Teacher(args, task, run.contexts)
    title = choice.title
    if args.student_layers is not None:
        model, tokenizer = teacher.student()
        title = f'{args.student_layers} layers of its teacher'
    elif args.deploy:
        model = make_deployed(args, task, run.ctx)
        tokenizer = choice.tokenizer('classification', args.do_lower_case)
    else:
        if args.only_inference:
            check_labels(task, choice.model)
        model, tokenizer = make_task_model(
            args, choice, 'classification', run.contexts,
            trains=not args.only_inference, length_flag='max_len',
            do_lower_case=args.do_lower_case, num_labels=task.num_labels,
        )  # fmt: skip
    sets = TaskSets(
        task,
        args.data_dir,
        ClassifierFeatures(tokenizer, task, args.max_len),
        args.batch_size,
        args.dev_batch_size,
        workers,
        args.batch_tokens,
        seed=args.seed,
        round_to=args.round_to,
        pad_val=tokenizer.pad_token_id,
        ctx=[run.ctx] if args.deploy else run.contexts,
    )
    if args.do_predict and not any(map(sets.has, task.test_segments)):
        raise InputError('--do_predict: there is no test set')
    segments = task.dev_segments
    if args.only_inference:
        predicts_alone = args.do_predict and not args.do_eval
        segments = () if predicts_alone else tuple(filter(sets.has, segments))

    def make_evaluator(forward):
        write = write_class_probabilities if args.do_predict else write_predictions
        return ClassifierEvaluator(task, sets, forward, segments, write)

    if args.only_calibration:
        quantize_model(run, task, model, sets, segments, make_evaluator)
        return
    evaluator = make_evaluator(forward_of(args, model))
    if args.only_inference:
        run.infer(evaluator.evaluate, evaluator.predict)
    else:
        train(run, title, task, model, tokenizer, sets, evaluator, teacher)


if __name__ == '__main__':
    sys.exit(cli.run(main))
