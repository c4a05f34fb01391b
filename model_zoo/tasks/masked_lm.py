"""The task of masked words: the pre-training of BERT, or of a model like it, on further text."""

import contextlib
import dataclasses
import glob
import os
import socket
from typing import Optional

from ..errors import InputError
from ..opening import config_of_folder, find_block_class
from ..pretrained import get_entry, is_model_folder, resolve
from ..registry import family_of_class
from ..training.settings import (
    BackendSettings,
    BatchTokensSettings,
    BertSettings,
    Settings,
    TrainingSettings,
    lower_case,
    setting,
    settings,
)
from .pretraining import (
    NUM_BUCKETS,
    MappedShards,
    PretrainingLoader,
    SampleOptions,
    ShardFiles,
    TextFiles,
    describe_files,
    epoch_of,
    matching_files,
)
from .pretraining.objective import evaluate_pretraining, pretraining_objective
from .tables import split_text, text_file
from .task import Data, Task

__all__ = [
    'MaskedLMSettings',
    'MaskedLMTask',
    'SampleSettings',
    'make_sample_options',
    'pretraining_class',
]

_DISCRIMINATOR = 'ElectraForPreTraining'


@settings()
class SampleSettings(Settings):
    """How samples are made of a text."""

    title = 'data'

    masked_lm_only: Optional[bool] = setting(
        None, 'masked words alone, without next sentences, in samples of full sentences; the '
        'default for RoBERTa, XLM-R, DistilBERT and ELECTRA',
        flag={'action': 'store_true', 'rank_last': True},
    )  # fmt: skip
    max_seq_length: int = setting(
        128, 'of a text: tokens, special ones included', at_least=5
    )
    max_predictions_per_seq: int = setting(
        20, 'of a text: masks of a sample', at_least=1
    )
    masked_lm_prob: float = setting(
        0.15, 'of a text: part of the tokens that is masked', above=0, at_most=1
    )
    short_seq_prob: float = setting(
        0.1, 'of a text: part of the documents that is cut into shorter samples', at_least=0,
        at_most=1,
    )  # fmt: skip
    whole_word_mask: bool = setting(False, 'of a text: mask all pieces of a word, or none')


@settings(dev_batch_size=32, seed=42)
class MaskedLMSettings(
    SampleSettings, BertSettings, BatchTokensSettings, BackendSettings, TrainingSettings
):
    """The pre-training of BERT on further text, or on samples that were made of it."""

    title = 'data'

    train_corpus: Optional[str] = setting(
        None, 'text in UTF-8; wildcards and commas for several files'
    )
    pregenerated_data: Optional[str] = setting(
        None, 'instead: .npz of create_pretraining_data.py, or '
        "pytorch-pretrained-bert's epoch_N.json, one for each epoch; or their folder",
    )  # fmt: skip
    dev_corpus: Optional[str] = setting(
        None, 'text to evaluate on after each epoch; always with the same masks'
    )
    dev_data: Optional[str] = setting(None, 'instead: .npz, or their folder')
    text_column: Optional[str] = setting(None, 'where a text is a table: its column')
    reduce_memory: bool = setting(
        False, 'of `pregenerated_data`: unpack the samples to `output_dir` for the training, and '
        'map them into memory, all mixed; `train_corpus` is read in small parts anyhow',
    )  # fmt: skip
    do_lower_case: Optional[bool] = lower_case()
    num_workers: int = setting(
        1, 'of a text: processes that make samples; 0: it is done between the updates', at_least=0
    )

    def check(self):
        super().check()
        for name in ('pregenerated_data', 'dev_data'):
            path = getattr(self, name)
            if path is not None and os.path.isdir(path):
                setattr(self, name, os.path.join(path, _samples_in(path)))


def _samples_in(folder):
    """A pattern of the files of samples in a folder."""
    is_original = glob.glob(os.path.join(glob.escape(folder), 'epoch_*[0-9].json'))
    return 'epoch_*[0-9].json' if is_original else '*.npz'


class MaskedLMTask(Task):
    """Masked words, and next sentences where the model has them: further pre-training.

    Sets in memory are texts, each a document of its own, with one sentence per line; or rows with a
    column of texts.
    """

    settings_class, name = MaskedLMSettings, 'lm'
    in_python = {'masked_lm_only': True, 'num_workers': 0}
    trains, has_own_head, draws_updates = True, False, True
    prefix, trained_for, predicted, unit = '', None, None, None
    metric, score_name, use = 'mlm_loss', 'negative loss', 'fill-mask'
    title = 'pre-trained further'
    free = (
        'comm_backend', 'dev_corpus', 'dev_data', 'num_workers', 'reduce_memory', 'vocab_file',
        'text_column',
    )  # fmt: skip

    most_batches = None

    def __init__(self, settings):
        super().__init__(settings)
        self._closing, self._objective = contextlib.ExitStack(), None

    @property
    def reads_text(self):
        """Whether samples are made on the fly."""
        return bool(self.settings.train_corpus or self.settings.dev_corpus)

    def begin(self):
        settings = self.settings
        if bool(settings.train_corpus) == bool(settings.pregenerated_data):
            raise InputError('give `train_corpus`, a text, or `pregenerated_data`, samples')
        if settings.dev_corpus and settings.dev_data:
            raise InputError(
                '`dev_corpus` and `dev_data` both name what to evaluate on: give one'
            )
        if settings.early_stop and not (settings.dev_corpus or settings.dev_data):
            raise InputError('`early_stop` needs `dev_corpus` or `dev_data`')
        for name in ('train_corpus', 'pregenerated_data', 'dev_corpus', 'dev_data'):
            try:
                if getattr(settings, name) is not None:
                    matching_files(getattr(settings, name))
            except InputError as error:
                raise InputError(f'`{name}`: {error}') from None

    def take(self, sources):
        settings = self.settings
        if 'test' in sources:
            raise InputError("`test`: the task 'fill-mask' has none; give `dev`")
        for segment, name in (('train', 'train_corpus'), ('dev', 'dev_corpus')):
            if segment in sources:
                path = text_file(
                    sources[segment], segment, settings.output_dir, '\n\n', settings.text_column
                )
                setattr(settings, name, path)

    def sources(self):
        settings = self.settings
        dev = bool(settings.dev_corpus or settings.dev_data)
        return {'train': 'train', **({'dev': 'dev'} if dev else {})}

    def read(self, source, segment):
        """The text or the samples stay in their files."""
        return source

    def split(self, rows, share):
        settings = self.settings
        settings.train_corpus, settings.dev_corpus = split_text(
            settings.train_corpus, share, settings.output_dir, '\n\n'
        )
        return 'train', 'dev'

    def is_labelled(self, rows):
        return True

    def prepare(self, rows, choice=None):
        settings = self.settings
        if choice is not None:
            self.head = pretraining_class(settings, choice.model, choice.dataset)

    def fit(self, model, tokenizer):
        settings, self._vocab = self.settings, tokenizer.vocab
        self._has_pairs = 'nsp' in model.pretraining_terms
        self._objective = self._objective or pretraining_objective(model)
        self._context, self._options = model.context_length, None
        if self.reads_text:
            self.check_length(model)
            self._options = make_sample_options(settings, self._has_pairs)
        return model

    def check_length(self, model):
        length = self.settings.max_seq_length
        if length > model.context_length:
            raise InputError(
                f'`max_seq_length` {length}: the model takes {model.context_length} tokens at most'
            )

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        settings = self.settings
        options = {'ctx': contexts, 'workers': self.workers}
        if segment == 'train':
            source = self._source(
                settings.train_corpus, settings.pregenerated_data, tokenizer,
                settings.reduce_memory,
            )  # fmt: skip
            if self._has_epochs:
                source.take_one_an_epoch()
            by_tokens = settings.batch_tokens is not None
            loader = PretrainingLoader(
                source, settings.batch_tokens or settings.batch_size,
                num_buckets=NUM_BUCKETS if by_tokens else 1, use_avg_len=by_tokens,
                seed=settings.seed, accumulate=accumulate, **options,
            )  # fmt: skip
        else:
            source = self._source(settings.dev_corpus, settings.dev_data, tokenizer)
            loader = PretrainingLoader(source, settings.dev_batch_size, shuffle=False, **options)
        self._closing.callback(loader.close)
        # epochs of a text, or of epochs' files, have different numbers of batches
        if segment == 'train' and settings.training_steps is None and (
            settings.train_corpus or self._has_epochs
        ):
            batches = sum(map(loader.count_batches, range(int(settings.epochs))))
            settings.training_steps = batches // accumulate
        return Data(rows, None, loader)

    @property
    def _has_epochs(self):
        """Whether the samples are in pytorch-pretrained-bert's files, one for each epoch."""
        return not self.settings.train_corpus and all(
            epoch_of(path) is not None for path in matching_files(self.settings.pregenerated_data)
        )

    def _source(self, corpus, samples, tokenizer, is_mapped=False):
        settings = self.settings
        if corpus:
            return TextFiles(corpus, tokenizer, self._options, num_workers=settings.num_workers)
        options = {'next_sentence': self._has_pairs, 'max_len': self._context}
        options['workers'] = self.workers
        if is_mapped:  # to a folder of this machine's own
            folder = os.path.join(settings.output_dir, f'mapped_{socket.gethostname()}')
            return MappedShards(samples, tokenizer.vocab, folder, **options)
        return ShardFiles(samples, tokenizer.vocab, **options)

    def close(self):
        self._closing.close()

    def describe(self, data):
        vocab, settings = self._vocab, self.settings
        described = {'vocab_file': (len(vocab), 'tokens', vocab.idx_to_token)}
        for name in ('train_corpus', 'pregenerated_data'):
            if getattr(settings, name) is not None:
                described[name] = describe_files(getattr(settings, name))
        return described

    def objective(self, model, data):
        return self._objective

    def evaluate(self, evaluator, segments, guard=None):
        if not segments:
            return 0.0, {}
        loader = evaluator.sets[segments[0]].loader
        return evaluate_pretraining(
            self._objective, loader, self.workers, guard, self.most_batches
        )

    def predict(self, forward, data, guard=None):
        """Nothing."""

    def examine(self, segment, data, outputs):
        """Nothing: there are no single examples."""

    def results(self):
        return {}


def make_sample_options(settings, next_sentence):
    """How samples are made from a text; masks that get lost are warned of."""
    if not next_sentence and settings.is_given('short_seq_prob'):
        raise InputError(
            '`short_seq_prob` is of pairs with next sentences: samples of masked words alone are '
            'packed with as many sentences as fit'
        )
    names = (field.name for field in dataclasses.fields(SampleOptions))
    given = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
    options = SampleOptions(**given, next_sentence=next_sentence)
    options.warn_of_lost_masks()
    return options


def pretraining_class(settings, model, dataset=None):
    """The class of the block to pre-train: that of 'pretraining', or of 'masked_lm' if that is
    asked for, or the model has no next sentences.
    """
    family = family_of_class(find_block_class('bert', None, model, dataset))
    if 'replaced_words' in family.tasks and not settings.from_scratch:
        _check_generator(model, dataset)
    both = 'pretraining' in family.tasks and not settings.masked_lm_only
    return family.block_class('pretraining' if both else 'masked_lm')


def _check_generator(model, dataset):
    if is_model_folder(model):
        refused = _DISCRIMINATOR in (config_of_folder(model).get('architectures') or ())
    else:
        refused = 'decoder' in get_entry(*resolve(model, dataset)).lacks
    if refused:
        raise InputError(
            f'{model!r} is a discriminator, which finds words that a generator has replaced: this '
            'needs both at a time, and is not built here. Its generator can be trained on masked '
            'words: name that, such as google/electra-small-generator'
        )
