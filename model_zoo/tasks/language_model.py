"""The language model task: a text in blocks or streams, scored by perplexity."""

import logging
import math
import os
import time

import numpy as np

from ..batches import Sample, SampleLoader
from ..batches.sampling import random_state
from ..batches.windows import text_windows
from ..errors import InputError, UnknownNameError
from ..registry import family_of_class
from ..tokenization.learn import learn_byte_pairs
from ..training.job import describe
from ..training.objective import Objective, outputs_of
from ..util.reading import read_text
from .settings import LanguageModelSettings
from .tables import given_files
from .task import Data
from .text_task import TextTask, split_text

__all__ = ['BlockLoader', 'BlockReading', 'LanguageModelTask', 'evaluate_perplexity']

logger = logging.getLogger(__name__)


class BlockLoader(SampleLoader):
    """Blocks of a text that are read independently.

    The last token of a block is also the first of the next one. So an epoch predicts each token
    once, except the text's first one. ``Batch.count`` counts all tokens except the first of each
    row. With `shuffle` the order of epoch e depends only on ``(seed, e)``.

    Parameters
    ----------
    tokens : numpy.ndarray, shape (number of tokens,)
    block_size : int
        Tokens of a block; the last one of the text may have less.
    ctx, workers
        See `Loader`; each of several workers has `batch_size` blocks of a batch.

    Raises
    ------
    InputError
        If there are less than two tokens.
    """

    def __init__(
        self, tokens, block_size, batch_size, shuffle=False, seed=0, ctx=None, workers=None
    ):
        tokens = np.asarray(tokens, np.int32)
        if len(tokens) < 2:
            raise InputError(f'a text of {len(tokens)} tokens is too short: two are needed')
        windows = text_windows(len(tokens), block_size, block_size - 1)
        blocks = [Sample(tokens[window.start : window.stop]) for window in windows]
        super().__init__(blocks, seed=seed, ctx=ctx, workers=workers)
        self._batch_size, self._shuffle = batch_size * self._size, shuffle

    def __len__(self):
        return math.ceil(len(self.samples) / self._batch_size)

    def batch_indices(self, epoch):
        order = np.arange(len(self.samples))
        if self._shuffle:
            random_state(self._seed, epoch).shuffle(order)
        return np.split(order, range(self._batch_size, len(order), self._batch_size))

    def _batch(self, indices, ctx):
        batch = super()._batch(indices, ctx)
        batch.count = sum(len(self.samples[index].input_ids) - 1 for index in indices)
        return batch


def evaluate_perplexity(loss_sum, loader, num_words, segment='dev', guard=None):
    """Compute the perplexity of a text: e to the mean loss of its tokens, and of its words.

    Parameters
    ----------
    loss_sum : callable
        ``loss_sum(batch) -> NDArray`` of one number, the sum of the losses (natural logarithms) of
        the ``batch.count`` tokens that the batch predicts.

    Returns
    -------
    (float, dict)
        The score, which is the negative loss; and by `segment` ``loss`` and ``perplexity`` per
        token, ``word_perplexity``, and the numbers of ``tokens`` and ``words``.
    """
    started, total, tokens = time.perf_counter(), 0.0, 0
    for batch, loss in outputs_of(loss_sum, loader, guard):
        total, tokens = total + float(loss.asscalar()), tokens + batch.count
    with np.errstate(over='ignore'):  # infinite, then
        perplexity, word_perplexity = np.exp([total / tokens, total / num_words]).tolist()
    metrics = {'loss': total / tokens, 'perplexity': perplexity, 'word_perplexity': word_perplexity}
    speed = tokens / (time.perf_counter() - started)
    metrics.update(tokens=tokens, words=num_words, tokens_per_second=speed)
    logger.info(
        '%(segment)s: perplexity %(perplexity).3f per token (loss %(loss).4f), '
        '%(word_perplexity).3f per word; %(tokens)d tokens, %(words)d words '
        '(%(tokens_per_second).0f tokens/s)',
        {'segment': segment, **metrics},
    )
    return -metrics['loss'], {segment: metrics}


class BlockReading:
    """Reading of a text by OpenAI GPT and GPT-2: in independent blocks.

    A head whose model reads otherwise has a class like this one as its attribute ``reading``.

    Attributes
    ----------
    block : Block
        The block to train.
    settings : Settings
        The settings, with the model's own values for what they leave open.
    not_for : tuple of str
        Settings that have no meaning for the model.
    """

    not_for = 'tgt_len', 'ext_len', 'mem_len', 'cutoffs'
    needs_vocab = False

    def __init__(self, model, tokenizer, settings, workers):
        size, longest = settings.max_length or model.context_length, model.context_length
        if not 2 <= size <= longest:
            problem = f'{size} must be 2 to {longest}, the tokens that the model takes'
            raise InputError(problem, field='max_length')
        self.settings = settings.with_defaults(max_length=size)
        self._tokenizer, self._workers, self.block = tokenizer, workers, model
        if settings.split_special_tokens:
            tokenizer.split_special_tokens = True  # in use, too

    @staticmethod
    def learn_vocab(path, size, folder):
        """Learn a vocabulary from a text; returns the path of its file."""
        return learn_byte_pairs(path, size, folder)

    @staticmethod
    def options(settings, tokenizer):
        """Return options of a new model; ``tokenizer()`` opens the tokenizer."""
        return {}

    def load(self, path, batch_size, train, contexts):
        """Return the loader of a text's batches, the number of its words, and its tokens."""
        text = read_text(path)
        tokens = np.array(self._tokenizer.encode_text(text), np.int32)
        settings, workers = self.settings, self._workers if train else None
        options = batch_size, train, settings.seed, contexts, workers
        return BlockLoader(tokens, settings.max_length, *options), len(text.split()), tokens

    def mean_loss(self, batch):
        """Return the mean loss of a batch's tokens."""
        return self.block(batch.words, valid_length=batch.valid_length, lm_labels=batch.words)

    def loss_sum(self, batch):
        """Return the sum of the losses of a batch's tokens."""
        return self.mean_loss(batch) * batch.count


class LanguageModelTask(TextTask):
    """Next words: training OpenAI GPT, GPT-2 or Transformer-XL on a text.

    Sets in memory are texts, or rows with a column of texts; they are joined by newlines.
    """

    settings_class, name, head = LanguageModelSettings, 'lm', 'language_model'
    family = trained_for = None
    metric, use, unit = 'loss', 'text-generation', 'tokens'
    score_name, _options = 'log-likelihood of a token', {}
    command, call = "zoo generate {folder} 'It was'", "'It was'"

    trains = property(lambda self: self.settings.train_file is not None)
    title = property(lambda self: os.path.basename(self.settings.train_file))

    def locate(self, given=None):
        given = {**given_files(self.settings, self.files, self.dev_share), **(given or {})}.items()
        sources = {name: self.text_file(source, name) for name, source in given}
        if not sources:
            raise InputError('no text: use `train_file`, `dev_file` or `test_file`')
        self.assume(**{f'{name}_file': path for name, path in sources.items()})
        return sources

    def split(self, rows, share):
        """Hold out the last lines: a text is in order."""
        return split_text(rows, share, self.rows_folder)

    def configure(self, located):
        if located is None:
            return
        try:
            block_class = located.family.block_class(self.head)
        except UnknownNameError:
            problem = f"{located.name!r} can't generate text, as gpt2 can"
            raise InputError(f"{problem}; the task 'fill-mask' trains BERT on text") from None
        for name in self._reading_of(block_class).not_for:
            if getattr(self.settings, name) not in (None, False):
                family = family_of_class(block_class).name
                raise InputError(f'is not for {family}: leave it out', field=name)

    def open(self, choice, contexts):
        settings, reading = self.settings, self._reading_of(choice.block_class(self.head))
        if settings.learn_vocab or (reading.needs_vocab and settings.from_scratch):
            with self.workers.first_alone():
                choice.vocab_file = settings.vocab_file or self._learn(reading)
        if settings.from_scratch:
            self._options = reading.options(settings, lambda: choice.tokenizer(self.head))
        return super().open(choice, contexts)

    @staticmethod
    def _reading_of(model):
        return getattr(model, 'reading', BlockReading)

    def _learn(self, reading):
        settings = self.settings
        folder = os.path.join(self.output_dir, 'vocab')
        path = os.path.join(folder, 'vocab.json')
        if (settings.resume or self.workers.rank > 0) and os.path.isfile(path):
            return path
        return reading.learn_vocab(settings.train_file, settings.learn_vocab, folder)

    def model_options(self):
        return self._options

    def setup(self, model, tokenizer):
        self._model = model
        self._reading = self._reading_of(model)(model, tokenizer, self.settings, self.workers)
        self.settings = self._reading.settings
        return self._reading.block

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        settings, train = self.settings, segment == 'train'
        size = settings.batch_size if train else settings.dev_batch_size
        loader, words, tokens = self._reading.load(rows, size, train, contexts)
        loader.num_words = words
        if train:
            self._train_tokens = len(tokens)
        return Data(tokens, tokens, loader)

    def describe(self, data):
        return describe(len(data.samples), 'tokens', [data.samples])

    def objective(self, model, data):
        def terms(batch):
            return [self._reading.mean_loss(batch)]

        return Objective(terms, lambda batch: (batch.count,), unit='tokens')

    def forward(self, model, batch):
        return self._reading.loss_sum(batch)

    def measure(self, evaluator, segment, guard):
        loader = evaluator.sets[segment].loader
        return evaluate_perplexity(evaluator.forward, loader, loader.num_words, segment, guard)

    def results(self):
        return {'tokens': self._train_tokens, 'vocab_size': self._model.config.vocab_size}
