"""Distillation: a small classifier learns from a large one."""

from ..opening import open_model
from ..tasks.classification import Distillation, make_student, teacher_layers
from .job import describe_model

__all__ = ['Teacher']


class Teacher:
    """The model that a small one learns from.

    Parameters
    ----------
    args : TeacherSettings
    task : model_zoo.tasks.classification.Task
    ctx : mxnet.Context or list of mxnet.Context
    """

    def __init__(self, args, task, ctx):
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
