"""The model that a command's flags choose."""

import contextlib
import functools
import glob
import logging
import os

from ..checkpoint.readers import weights_in_folder
from ..errors import InputError
from ..opening import locate, open_model, open_tokenizer
from ..pretrained import local_path, names_files
from ..pretrained.files import files_in_folder
from ..registry import family_of_class
from ..tasks.tables import check_files

logger = logging.getLogger(__name__)


class ModelChoice:
    """The flags that choose a model, and the model and tokenizer that they choose.

    They are the fields of `ModelSettings`.
    """

    def __init__(self, args, family=None):
        check_files(args, 'config_file', 'model_parameters', 'vocab_file')
        self._args, self._family = args, family or getattr(args, 'family', None)
        self._pretrained, self._parameters = args.pretrained_parameters, args.model_parameters
        self.model, checkpoint = args.model, args.checkpoint
        self.config = args.config_file and local_path(args.config_file)[0]
        self._from_scratch = args.from_scratch or bool(self.config and not checkpoint)
        self.vocab_file, self._hparams = args.vocab_file, parse_hparams(args.hparams)
        if checkpoint:
            self.model, folder = _weights_of(checkpoint)
            if folder is not None:  # that has what belongs to the weights
                files = files_in_folder(folder)
                self.config = self.config or files.config
                self.vocab_file = self.vocab_file or files.vocab
        self.is_folder = bool(checkpoint) or names_files(self.model)
        if self._from_scratch and (self._pretrained or self._parameters):
            raise InputError('excludes files of parameters', field='from_scratch')
        if self.is_folder and (self._pretrained or self._from_scratch or self._hparams):
            others = '`pretrained_parameters`, `from_scratch` and `hparams`'
            problem = f'{self.model!r} has weights and a size: leave out {others}'
            raise InputError(problem, field='model')

    @property
    def title(self):
        """The model's name, for titles and messages."""
        return os.path.basename(os.path.normpath(self.config or self.model))

    @functools.cached_property
    def located(self):
        """The `Located`; nothing large is fetched."""
        options = {'config': self.config, 'vocab': False, 'expected_family': self._family}
        return locate(self.model, dataset_name=self._args.dataset, weights=None, **options)

    def block_class(self, task):
        """The class of the block for a task of the model, which may be a variant of the family."""
        return task if isinstance(task, type) else self.located.family.block_class(task)

    def tokenizer(self, task, do_lower_case=None):
        """The tokenizer that belongs to the model; see `build`."""
        options = {'vocab_file': self.vocab_file, 'do_lower_case': do_lower_case}
        options.update(dataset_name=self._args.dataset, weights=self._pretrained)
        return open_tokenizer(self.model, self.block_class(task), **options)

    def open_task(self, task, ctx, trains, do_lower_case=None, **task_options):
        """Return a task's model with its parameters, and its tokenizer.

        With `trains` false, a random head gets a warning, and a model with another task is refused.
        By default, a vocabulary that was published with its model lower-cases texts as the model
        did, as in pytorch-pretrained-bert.
        """
        if not trains and not (self.is_folder or self._parameters):
            logger.warning('no trained model is given: the predictions come from a random head')
        block_class = self.block_class(task)
        family = family_of_class(block_class)
        if not trains and self.is_folder and not self._parameters and family is not None:
            trained = family.task_named(self.located.architectures)
            known = family.tasks.get(trained, block_class)
            if trained != 'masked_lm' and known is not block_class:
                problem = f'{self.model!r} is a {known.__name__}: give a {block_class.__name__}'
                raise InputError(problem, field='model')
        lowers = do_lower_case if self.is_folder or self.vocab_file else None
        model, tokenizer = self.build(task, ctx, lowers, trains=trains, **task_options)
        if do_lower_case not in (None, tokenizer.do_lower_case):
            logger.warning('the vocabulary decides: do_lower_case is %s', tokenizer.do_lower_case)
        return model, tokenizer

    def build(self, task, ctx, do_lower_case=None, prepare=None, **options):
        """Return the task's block with its parameters, and its tokenizer.

        `prepare` may change both, for example add special tokens, before ``model_parameters`` are
        loaded. Parameters that no file has are initialized at random.
        """
        weights = self._pretrained or not (self._from_scratch or self._parameters)
        if self.is_folder:
            weights = True
        elif not self.config:
            options = {**self.located.family.fields_of(self.model, self._hparams), **options}
            if self.vocab_file and weights is True:
                others = '`from_scratch`, `model_parameters` or `pretrained_parameters`'
                problem = f'needs {others}: pretrained weights have a vocabulary'
                raise InputError(problem, field='vocab_file')
        options.update(vocab_file=self.vocab_file, do_lower_case=do_lower_case, ctx=ctx)
        options.update(dataset_name=self._args.dataset, weights=weights, config=self.config)
        block, tokenizer, _ = open_model(self.model, self.block_class(task), **options)
        if prepare is not None:
            prepare(block, tokenizer)
            if len(tokenizer.vocab) > block.config.embedding_rows:
                raise InputError('the vocabulary does not fit: it is larger than the embedding')
        if self._parameters:
            logger.info('loading %s', self._parameters)
            block.load_parameters(self._parameters, ctx=ctx, cast_dtype=True)
        if self._args.dtype != 'float32':
            block.cast(self._args.dtype)
        # Batches have many lengths; static_shape, which plans the memory anew at each, is no gain.
        block.hybridize(static_alloc=True)
        return block, tokenizer


def _weights_of(path):
    """Return the weights that `checkpoint` names, and the folder of what belongs to them.

    A run's weights are the best epoch's; until it has ended, the newest checkpoint's.
    """
    if not os.path.isdir(path):
        return path, None
    weights_here, best = weights_in_folder(path), os.path.join(path, 'best_model')
    if weights_here is None and files_in_folder(best).config:
        return best, None
    weights = glob.glob(os.path.join(glob.escape(path), 'checkpoints*', 'step-*', 'model.params'))
    models = [each for each in (path, os.path.join(path, 'model')) if files_in_folder(each).config]
    if weights:
        newest = max(weights, key=lambda name: (os.path.getmtime(name), name))
        if weights_here is None or os.path.getmtime(newest) > os.path.getmtime(weights_here):
            logger.info('%s is the folder of a training run: using %s', path, newest)
            return newest, models[0] if models else path
    return (path if weights_here or not models else models[0]), None


def family_of(model, dataset=None):
    """Return the name of a model's family; None if its files don't say it."""
    try:
        return locate(model, dataset_name=dataset, weights=None, vocab=False).family.name
    except InputError:
        return None


def parse_hparams(words):
    """``['num_layers=2,units=128', 'activation=gelu']`` -> dict, with numbers as int or float."""
    result = {}
    for item in filter(None, ','.join(words or ()).split(',')):
        name, _, value = item.partition('=')
        if not (name and value):
            raise InputError(f'{item!r}: write name=value, such as num_layers=2', field='hparams')
        result[name] = value
        for convert in (float, int):
            with contextlib.suppress(ValueError):
                result[name] = convert(value)
    return result
