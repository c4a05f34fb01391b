"""The model that a training begins with, as the flags name it."""

import dataclasses
import logging
import os

from ..errors import InputError
from ..pretrained import files_in_folder, get_entry, is_alias, resolve
from ..registry import get_model
from ..tokenization.vocab_file import find_vocab_file
from .arguments import check_files
from .labels import config_of_folder

__all__ = ['ModelChoice', 'family_of', 'is_model_folder', 'parse_hparams']

logger = logging.getLogger(__name__)


class ModelChoice:
    """The flags that choose a model, and the model and tokenizer that they choose.

    With the family 'bert' they are GluonNLP's ``--bert_model``, ``--bert_dataset`` and
    ``--pretrained_bert_parameters``; without one ``--model``, ``--dataset`` and
    ``--pretrained_parameters``. The others are the same for all: ``--model_parameters``,
    ``--from_scratch``, ``--vocab_file`` and ``--hparams``.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_arguments`, and ``--dtype``.
    family : str, optional
        As given to `add_arguments`.

    Attributes
    ----------
    model : str
        Name, or a folder.
    is_folder : bool
        Whether `model` is a folder of ``save_pretrained``.

    Raises
    ------
    InputError
        If the flags contradict one another; the message names them.
    """

    @classmethod
    def add_arguments(cls, parser, model, family=None):
        """Add the flags; `model` is the default one.

        Parameters
        ----------
        parser : argparse.ArgumentParser
        model : str
        family : str, optional
        """
        model_flag, dataset_flag, parameters_flag = cls._flags(family)
        add = parser.add_argument_group('model').add_argument
        add(f'--{model_flag}', default=model, help='name, or a folder of save_pretrained')
        add(
            f'--{dataset_flag}',
            help="the data set it was pretrained on; default: the model's usual one",
        )
        add(f'--{parameters_flag}', help='file of pretrained parameters, without the task')
        add('--model_parameters', help="file of parameters, the task's included, to begin from")
        add('--from_scratch', action='store_true', help='begin from random parameters')
        add('--vocab_file', help=f'vocabulary to use in the place of that of --{dataset_flag}')
        add('--hparams', nargs='+', help="changes of the model's size, as num_layers=2,units=128")

    @staticmethod
    def _flags(family):
        part = f'{family}_' if family else ''
        return f'{part}model', f'{part}dataset', f'pretrained_{part}parameters'

    def __init__(self, args, family=None):
        flags = self._flags(family)
        self._model_flag, _, self._parameters_flag = flags
        self.model, self._dataset, self._pretrained = (getattr(args, flag) for flag in flags)
        self._parameters = args.model_parameters
        self._from_scratch = args.from_scratch
        self._dtype = args.dtype
        self._vocab_file = args.vocab_file
        self._hparams = parse_hparams(args.hparams)
        self.is_folder = is_model_folder(self.model)
        if self._from_scratch and (self._pretrained or self._parameters):
            raise InputError(
                '--from_scratch begins from random parameters: give it or a file of them'
            )
        check_files(args, 'model_parameters', 'vocab_file')
        if self.is_folder and (self._pretrained or self._from_scratch or self._hparams):
            raise InputError(
                f'--{self._model_flag} {self.model!r} is a folder with weights and a size of its '
                f'own: leave out --{self._parameters_flag}, --from_scratch and --hparams'
            )

    @property
    def has_task(self):
        """Whether the weights that were named are those of a model trained for a task."""
        return self.is_folder or self._parameters is not None

    def tokenizer(self, open_tokenizer, vocab=None):
        """The tokenizer that belongs to the model.

        Parameters
        ----------
        open_tokenizer : callable
            The family's: ``open_tokenizer(file, vocab)``, `file` as ``find_vocab_file`` returns it.
        vocab : gluonnlp.Vocab, optional
            Its vocabulary, where that is loaded already.
        """
        if self.is_folder:
            model, dataset, path = None, None, self._vocab_file or self.model
        else:
            model, dataset = resolve(self.model, self._dataset)
            path = self._vocab_file or self._pretrained
        return open_tokenizer(find_vocab_file(model, dataset, path=path), vocab)

    def build(
        self, task_block, open_tokenizer, ctx, zoo_options=None, prepare=None, **task_options
    ):
        """The task's block with its parameters, and its tokenizer.

        Parameters
        ----------
        task_block : type
            Subclass of ZooBlock: ``task_block(backbone, **task_options)``.
        open_tokenizer : callable
            See `tokenizer`.
        ctx : mx.Context
        zoo_options : dict, optional
            For ``get_model``, such as ``{'use_decoder': False}``.
        prepare : callable, optional
            ``prepare(block, tokenizer)`` changes both, such as by special tokens, before the
            parameters of ``--model_parameters`` are loaded.
        **task_options
            Such as ``num_labels=2``.

        Returns
        -------
        (ZooBlock, tokenizer)
            What no file has a value for is initialized at random. Hybridized.

        Raises
        ------
        ZooError
            If there is no such model, or its files can't be found or don't fit one another.
        """
        if self.is_folder:
            block = task_block.from_pretrained(self.model, ctx=ctx, **task_options)
            tokenizer = self.tokenizer(open_tokenizer)
        else:
            block, tokenizer = self._from_zoo(open_tokenizer, ctx, zoo_options or {})
            if not isinstance(block, task_block):
                # the zoo's block may have a head of its own
                base = block.base
                block = task_block(base, **task_options)
            _initialize_rest(block, ctx)
        if prepare is not None:
            prepare(block, tokenizer)
        # decoders have special tokens besides
        rows = getattr(block.config, 'total_tokens_embeddings', block.config.vocab_size)
        if len(tokenizer.vocab) > rows:
            raise InputError(
                f'the vocabulary does not fit: it has {len(tokenizer.vocab)} tokens, and the model '
                f'{rows}'
            )
        if self._parameters:
            logger.info('loading %s', self._parameters)
            block.load_parameters(self._parameters, ctx=ctx, cast_dtype=True)
        if self._dtype != 'float32':
            block.cast(self._dtype)
        # Batches have many lengths; static_shape, which plans the memory anew at each, is no gain.
        block.hybridize(static_alloc=True)
        return block, tokenizer

    def _from_zoo(self, open_tokenizer, ctx, options):
        name, dataset = resolve(self.model, self._dataset)
        pretrained = self._pretrained or True
        if self._from_scratch or self._parameters:
            pretrained = False
        if self._vocab_file and pretrained is True:
            raise InputError(
                f'--vocab_file {self._vocab_file!r}: pretrained weights have their own vocabulary; '
                'it goes with --from_scratch, --model_parameters or '
                f'--{self._parameters_flag}'
            )
        vocab = None if pretrained is True else self.tokenizer(open_tokenizer).vocab
        backbone, vocab = get_model(
            name,
            dataset_name=dataset,
            vocab=vocab,
            pretrained=pretrained,
            ctx=ctx,
            hparam_allow_override=bool(self._hparams) or self._from_scratch,
            **options,
            **self._hparams,
        )
        return backbone, self.tokenizer(open_tokenizer, vocab)


def is_model_folder(name):
    """Whether a model's name is that of a folder.

    One without weights may only happen to be called as a model is, such as this project's gpt2.
    """
    return os.path.isdir(name) and not (is_alias(name) and files_in_folder(name).weights is None)


def family_of(model, dataset, config_classes):
    """The family that a model belongs to.

    Parameters
    ----------
    model : str
        Name, or a folder.
    dataset : str or None
        The data set of a model's name.
    config_classes : dict of str to type
        Family -> its configuration class, of those that a folder may belong to.

    Returns
    -------
    str or None
        Also another family than these; None if a folder's config.json doesn't tell.

    Raises
    ------
    UnknownNameError
        If there is no such model.
    """
    if not is_model_folder(model):
        return get_entry(*resolve(model, dataset)).family
    fields = config_of_folder(model)
    for family, config_class in config_classes.items():
        # ours may not name the family, but have all of its fields
        own = {field.name for field in dataclasses.fields(config_class)}
        if fields.get('model_type') == config_class.model_type or own <= set(fields):
            return family
    return fields.get('model_type')


def _initialize_rest(block, ctx):
    """Initialize the parameters that have no values yet."""
    for parameter in block.collect_params().values():
        try:
            parameter.list_ctx()
        except RuntimeError:
            parameter.initialize(ctx=ctx)


def parse_hparams(words):
    """``['num_layers=2,units=128', 'activation=gelu']`` -> dict, numbers as such.

    Raises
    ------
    InputError
        If a word has another form.
    """
    result = {}
    for item in ','.join(words or ()).split(','):
        if not item:
            continue
        name, equals, value = item.partition('=')
        if not equals or not name or not value:
            raise InputError(f'--hparams {item!r}: write name=value, such as num_layers=2')
        for kind in (int, float, str):
            try:
                result[name] = kind(value)
                break
            except ValueError:
                continue
    return result
