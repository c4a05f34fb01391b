"""The flags of distillation: a small classifier learns from a large one."""

from ..errors import InputError
from ..opening import open_model
from ..tasks.classification import Distillation, make_student, teacher_layers
from . import cli
from .job import describe_model
from .labels import check_labels
from .model_choice import is_model_folder

__all__ = ['Teacher', 'add_distillation_arguments', 'check_distillation_arguments']


def add_distillation_arguments(parser):
    """Add the flags; `Teacher` follows them."""
    add = parser.add_argument_group('distillation').add_argument
    add('--teacher', metavar='FOLDER', help='learn from this trained model, too')
    add('--student_layers', type=int, metavar='N', help="begin with N of the teacher's layers, "
        'its embeddings and its head, instead of another model')  # fmt: skip
    add('--teacher_layers', type=int, nargs='+', metavar='N', help="the teacher's layer for each "
        "layer of the student, from 1; default: evenly spaced")  # fmt: skip
    add('--temperature', type=float, default=2.0, help="of the teacher's probabilities")
    add('--teacher_weight', type=float, default=0.5, help="part of the teacher's scores in the "
        'loss; the rest is that of the labels')  # fmt: skip
    add('--states_weight', type=float, default=1.0, help="weight of the layers' states")


def check_distillation_arguments(args, trains):
    """Raise InputError, naming the flag, if these flags can't be followed."""
    own = 'student_layers', 'teacher_layers', 'temperature', 'teacher_weight', 'states_weight'
    for flag in own:
        if args.teacher is None and cli.is_given(args, flag):
            raise InputError(f'--{flag} needs --teacher')
    if args.teacher is None:
        for flag in own:  # without a teacher they are no part of the job
            setattr(args, flag, None)
        return
    if not trains:
        raise InputError('--teacher is for a training: leave it out')
    if not is_model_folder(args.teacher):
        raise InputError(f'--teacher {args.teacher!r}: there is no folder of a model')
    if args.student_layers is not None:
        if args.student_layers < 1:
            raise InputError(f'--student_layers {args.student_layers}: give 1 or more')
        others = ('bert_model', 'bert_dataset', 'pretrained_bert_parameters', 'model_parameters',
                  'from_scratch', 'vocab_file', 'hparams', 'init_checkpoint', 'bert_config_file')
        for flag in others:
            if cli.is_given(args, flag):
                raise InputError(
                    f'--student_layers begins with the teacher: leave --{flag} out'
                )
    if not 0 < args.temperature < float('inf'):
        raise InputError(f'--temperature {args.temperature}: give a number above 0')
    if not 0 <= args.teacher_weight <= 1:
        raise InputError(f'--teacher_weight {args.teacher_weight}: give a number from 0 to 1')
    if not 0 <= args.states_weight < float('inf'):
        raise InputError(f'--states_weight {args.states_weight}: give a number from 0 up')


class Teacher:
    """The model of ``--teacher``.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_distillation_arguments`.
    task : model_zoo.tasks.classification.Task
    ctx : mxnet.Context or list of mxnet.Context
    """

    def __init__(self, args, task, ctx):
        check_labels(task, args.teacher)
        self._args, self._ctx = args, ctx
        self.block, self.tokenizer, _ = open_model(
            args.teacher, 'classification', ctx=ctx, num_labels=task.num_labels
        )
        if args.dtype != 'float32':
            self.block.cast(args.dtype)
        self.block.hybridize(static_alloc=True)

    def student(self):
        """The model that begins with layers of the teacher, and its tokenizer."""
        layers = teacher_layers(
            self._args.student_layers, self.block.config.num_hidden_layers,
            self._args.teacher_layers,
        )  # fmt: skip
        student = make_student(self.block, layers, self._ctx)
        if self._args.dtype != 'float32':
            student.cast(self._args.dtype)
        return student, self.tokenizer

    def objective(self, student):
        """What the student's training minimizes."""
        args = self._args
        return Distillation(
            student, self.block, args.teacher_layers, args.temperature, args.teacher_weight,
            args.states_weight,
        ).objective()  # fmt: skip

    @property
    def description(self):
        """The teacher in a job."""
        return describe_model(self.block)
