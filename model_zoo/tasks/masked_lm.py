"""The masked word tasks: pre-training of BERT, or of a similar model, and its continuation.

`MaskedLMTask` continues a model's pre-training on further text; `PretrainingTask` trains on many
shards of samples, in phases.
"""

import dataclasses
import itertools
import logging
import time

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..layers.losses import cross_entropy
from ..optimizer import finetune_schedule
from ..pretrained import get_entry, names_files
from ..records import is_table
from ..training.job import describe_vocab
from ..training.objective import Objective
from ..training.workers import Workers
from .pretraining.files import epoch_of, is_tfrecord, read_shard
from .pretraining.loaders import PretrainingLoader, SyntheticLoader
from .pretraining.processes import result_of
from .pretraining.sources import ShardFiles, TextFiles
from .pretraining.text import Corpus, SampleOptions, describe_files, matching_files
from .rows import FEW_ROWS
from .settings import NUM_BUCKETS, MaskedLMSettings, PretrainingSettings
from .tables import check_files, named_files
from .task import Data
from .text_task import TextTask, split_text

__all__ = ['MaskedLMTask', 'PretrainingTask', 'evaluate_pretraining', 'pretraining_objective']

logger = logging.getLogger(__name__)


class MaskedLMTask(TextTask):
    """Further pre-training on masked words, and next sentences if the model predicts them.

    Sets in memory are texts, each a document with one sentence per line; or rows with a column of
    texts.
    """

    settings_class, name = MaskedLMSettings, 'lm'
    in_python = {'masked_lm_only': True, 'num_workers': 0}
    trains, draws_updates, prefix, trained_for, unit = True, True, '', None, None
    metric, score_name, use = 'mlm_loss', 'negative loss', 'fill-mask'
    title = 'pre-trained further'
    command, call = "zoo fill {folder} 'A {mask} text.'", "'A {mask} text.'"

    shuffles_dev, _objective = False, None
    num_processes = property(lambda self: self.settings.num_workers)

    def pattern_of(self, segment):
        """Return a pattern of the files of a set, and whether they are texts."""
        settings = self.settings
        text = vars(settings)[f'{segment}_file']
        samples = {'train': settings.pregenerated_data, 'dev': settings.dev_data}.get(segment)
        return text or samples, bool(text)

    def locate(self, given=None):
        named, given = named_files(self.settings, self.files, self.dev_share), (given or {}).items()
        copies = {f'{name}_file': self.text_file(rows, name, '\n\n') for name, rows in given}
        self.assume(**{f'{name}_file': path for name, path in named.items()} | copies)
        settings = self.settings
        if bool(settings.train_file) == bool(settings.pregenerated_data):
            raise InputError('give `train_file`, a text, or `pregenerated_data`, samples')
        if self.dev_share and not settings.train_file:
            raise InputError('needs `train_file`', field='dev_split')
        segments = [name for name in ('train', 'dev', 'test') if self.pattern_of(name)[0]]
        for segment in segments:
            (pattern, is_text), name = self.pattern_of(segment), f'{segment}_file'
            files = [pattern] if is_table(pattern) else matching_files(pattern)
            if is_text and name not in copies:  # tables, and texts that aren't UTF-8, are copied
                names = (f'{name}_{number}' for number in itertools.count())
                parts = [self.text_file(path, each, '\n\n') for path, each in zip(files, names)]
                copies[name] = pattern if parts == files else ','.join(parts)
        self.assume(**copies)
        return {name: name for name in segments}

    def split(self, rows, share):
        train, dev = split_text(self.settings.train_file, share, self.rows_folder, True)
        self.assume(train_file=train, dev_file=dev, dev_split=None)
        return 'train', 'dev'

    def configure(self, located):
        if located is not None:
            self.head = pretraining_class(self.settings, located)

    def prepare(self, rows):
        for files, is_text in map(self.pattern_of, rows):
            if is_text and 'nsp' in getattr(self.head, 'pretraining_terms', ()):
                Corpus(matching_files(files)).check_pairs()

    def setup(self, model, tokenizer):
        self._vocab = tokenizer.vocab
        self._has_pairs = 'nsp' in model.pretraining_terms
        self._objective = self._objective or pretraining_objective(model)
        self._context, self._options = model.context_length, None
        if any(is_text for _, is_text in map(self.pattern_of, ('train', 'dev', 'test'))):
            self.settings = self.settings.fit_length('max_length', model.context_length)
            self._options = make_sample_options(self.settings, self._has_pairs)
        return model

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        source, (_, is_text) = self._source(segment, tokenizer), self.pattern_of(segment)
        if segment == 'train' and self.fits_rows:
            self.fit_to_rows(count_samples(source, self.settings.seed))
        size, options = self.batching(segment, accumulate)
        if segment == 'train':
            options = {**options, 'accumulate': accumulate, 'seed': self.settings.seed}
        else:
            options = {'shuffle': self.shuffles_dev and is_text}
        loader = PretrainingLoader(source, size, ctx=contexts, workers=self.workers, **options)
        return Data(rows, None, loader)

    def batching(self, segment, accumulate):
        """Return the batch size of a set, and further options of its loader."""
        settings = self.settings
        if segment != 'train':
            return settings.dev_batch_size, {}
        if settings.batch_tokens is None:
            return settings.batch_size, {}
        return settings.batch_tokens, {'num_buckets': NUM_BUCKETS, 'use_avg_len': True}

    @property
    def _has_epochs(self):
        """Whether the samples are in pytorch-pretrained-bert's files, one for each epoch."""
        files, is_text = self.pattern_of('train')
        return not is_text and all(epoch_of(path) is not None for path in matching_files(files))

    def _source(self, segment, tokenizer):
        files, is_text = self.pattern_of(segment)
        if is_text:
            return TextFiles(files, tokenizer, self._options, num_workers=self.num_processes)
        options = {'one_per_epoch': segment == 'train' and self._has_epochs}
        options['next_sentence'] = self._has_pairs
        return ShardFiles(files, tokenizer.vocab, self._context, **options)

    def describe(self, data):
        return describe_files(self.pattern_of(data.rows)[0])

    def job(self, train):
        name = 'train_file' if self.settings.train_file else 'pregenerated_data'
        return {'vocab_file': describe_vocab(self._vocab), name: train}

    def objective(self, model, data):
        return self._objective

    def measure(self, evaluator, segment, guard):
        options = self.workers, guard, self.settings.max_eval_steps
        loader = evaluator.sets[segment].loader
        value, part = evaluate_pretraining(self._objective, loader, *options)
        return value, {'eval' if segment == 'dev' else segment: part['eval']}

    def results(self):
        return {}


def count_samples(source, seed):
    """Return the number of samples of epoch 0; of a long text at least more than `FEW_ROWS`."""
    histogram, count = source.histogram_of(0), 0
    if histogram is not None:
        return int(histogram.sum())
    for part in source.parts(0):
        count += result_of(source.read(part, 0, seed)).count
        if count > FEW_ROWS:
            break
    return count


def make_sample_options(settings, next_sentence):
    """Return how samples are made from a text, and warn of masks that get lost."""
    given = vars(settings)
    names = {field.name for field in dataclasses.fields(SampleOptions)}
    options = {name: given[name] for name in names.intersection(given)}
    options.update(max_seq_length=settings.max_length, next_sentence=next_sentence)
    count, most = round(settings.max_length * settings.masked_lm_prob), 'max_predictions_per_seq'
    if count > settings.max_predictions_per_seq:
        logger.warning('`%s` cuts off some of the %d masks of a full sequence', most, count)
    return SampleOptions(**options)


def pretraining_class(settings, located):
    """Return the class of the block to pre-train: with next sentences, if the family has them and
    the settings don't ask for masked words alone.
    """
    family = located.family
    if 'replaced_words' in family.tasks and not settings.from_scratch:
        is_discriminator = 'ElectraForPreTraining' in located.architectures
        if located.model is not None:
            is_discriminator = 'decoder' in get_entry(located.model, located.dataset).lacks
        if is_discriminator:
            generator = 'use its generator, such as google/electra-small-generator'
            raise InputError(f'{located.name!r} is a discriminator: {generator}')
    both = family.predicts_next and not settings.masked_lm_only
    return family.block_class('pretraining' if both else 'masked_lm')


class PretrainingTask(MaskedLMTask):
    """Pre-training on masked words, and next sentences if the model predicts them."""

    settings_class, family, in_python, title = PretrainingSettings, None, {}, 'pre-training'

    name = property(lambda self: f'phase{2 if self.settings.phase2 else 1}')
    trains = property(lambda self: bool(self.settings.train_file or self.settings.synthetic_data))
    lowers = property(lambda self: False if self.settings.cased else None)
    shuffles_dev, _has_epochs = True, False
    num_processes = property(lambda self: self.settings.num_dataset_workers)

    def __init__(self, settings):
        given = settings.pretrained_parameters or settings.model_parameters
        given = given or settings.pretrained or settings.checkpoint
        from_scratch = not (given or names_files(settings.model))
        super().__init__(settings.with_defaults(from_scratch=from_scratch))

    def pattern_of(self, segment):
        settings = self.settings
        if segment == 'train':
            return settings.train_file, settings.raw
        return settings.dev_file, settings.raw and not settings.eval_use_npz

    def locate(self, given=None):
        settings = self.settings
        train_file = None if settings.synthetic_data else settings.train_file
        for patterns in filter(None, (train_file, settings.dev_file)):
            matching_files(patterns)
        check_files(settings, 'vocab_file')
        has_gpus = mx.runtime.Features().is_enabled('CUDA')
        if settings.gpus is None and self.workers.size > 1 and has_gpus:  # each has its own
            self.assume(gpus=','.join(map(str, range(mx.context.num_gpus()))))
        named = {'train': self.trains, 'dev': settings.dev_file}
        return {name: name for name, is_there in named.items() if is_there}

    def setup(self, model, tokenizer):
        self._objective = pretraining_objective(model, not self.settings.no_compute_acc)
        if self.settings.synthetic_data:
            self.settings = self.settings.fit_length('max_length', model.context_length)
        return super().setup(model, tokenizer)

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        settings = self.settings
        if segment != 'train' or not settings.synthetic_data:
            return super().load(segment, rows, tokenizer, contexts, accumulate)
        size, length = self.batching(segment, accumulate)[0], settings.max_length
        masks = min(settings.max_predictions_per_seq, length)
        options = {'seed': settings.seed, 'ctx': contexts, 'workers': self.workers}
        return Data(rows, None, SyntheticLoader(size, length, masks, tokenizer.vocab, **options))

    def batching(self, segment, accumulate):
        settings, count = self.settings, self.workers.size
        if segment != 'train':
            return self._set_batch_size('batch_size_eval', count), {}
        options = {'num_buckets': settings.num_buckets, 'use_avg_len': settings.use_avg_len}
        options['circle_length'] = settings.circle_length
        return self._set_batch_size('batch_size', accumulate * count), options

    def _set_batch_size(self, name, count):
        """Return a batch size, computed from the total of `count` batches if that is given."""
        size, total = (getattr(self.settings, each) for each in (name, f'total_{name}'))
        if total is not None and (total % count or size not in (None, total // count)):
            problem = f'is {total}, and must be {count} (workers, GPUs, `accumulate`) x `{name}`'
            raise InputError(problem, field=f'total_{name}')
        size = size or 8 if total is None else total // count
        self.assume(**{name: size})
        return size

    def _source(self, segment, tokenizer):
        """Return the source; sizes that contradict the samples are refused.

        TFRecords have one size, as Google's.
        """
        source, is_given = super()._source(segment, tokenizer), self.settings.is_given
        for name in filter(is_given, ('max_length', 'max_predictions_per_seq')):
            if not isinstance(source, ShardFiles):
                break
            path, value = source.paths[0], getattr(self.settings, name)
            samples, is_length = read_shard(path), name == 'max_length'
            width = (samples.input_ids if is_length else samples.masked_lm_positions).shape[1]
            if width > value or (width < value and is_tfrecord(path)):
                problem = f'{value}: the samples in {path!r} were made with {width}'
                raise InputError(problem, field=name)
        return source

    def describe(self, data):
        synthetic = data.rows == 'train' and self.settings.synthetic_data
        return None if synthetic else super().describe(data)

    def job(self, train):
        return {'vocab_file': describe_vocab(self._vocab), 'train_file': train}

    def schedule(self, num_steps):
        # as GluonNLP's: the first update isn't of rate 0, the last one is
        settings = self.settings
        return finetune_schedule(settings.lr, num_steps, settings.warmup_ratio, first_step=1)


# -- the losses of pre-training --------------------------------------------------------------------

#: names of the losses, of masked words and next sentences
TERMS = ('mlm', 'nsp')


def pretraining_objective(model, accuracies=True):
    """Return the objective of pre-training: the sum of 'mlm' and 'nsp', or 'mlm' alone.

    These are the means over the masked words and over the samples; with `accuracies`, how many of
    each were predicted right follows.

    Source: Devlin et al., "BERT", section 3.1; run_pretraining.py of google-research/bert.
    """
    names = model.pretraining_terms
    with_sentences = names == TERMS

    def terms(batch):
        scores = model(*batch.inputs, batch.masked_positions)
        words = batch.masked_ids.astype('float32')
        words = mx.nd.where(batch.masked_weights, words, -mx.nd.ones_like(words))  # -1: padding
        pairs = [(scores, words)]
        if with_sentences:
            sentences = batch.next_sentence_labels.astype('float32')
            pairs = [(scores[0], words), (scores[1], sentences)]
        pairs = [(array.astype('float32', copy=False), labels) for array, labels in pairs]
        with words.context:
            arrays = [cross_entropy(mx.nd, scores, labels) for scores, labels in pairs]
        if accuracies:
            hits = [scores.detach().argmax(axis=-1) == labels for scores, labels in pairs]
            arrays += [hit.sum().reshape((1,)) for hit in hits]
        return arrays

    return Objective(
        terms,
        counts=lambda batch: (batch.num_masked, len(batch.indices))[: len(names)],
        names=names,
        accuracies=accuracies,
        tokens=lambda batch: batch.num_tokens,
        unit='samples' if with_sentences else 'words',
    )


def evaluate_pretraining(objective, loader, workers=None, guard=None, max_batches=None):
    """Compute losses and accuracies over a data set.

    Parameters
    ----------
    loader : object
        Its ``epoch(0)`` iterates over the batches; None stands for a batch without a part for this
        worker.

    Returns
    -------
    (float, dict)
        The score, which is the negative sum of the losses; and, under the name 'eval', 'mlm_loss'
        and 'nsp_loss', means over all masked words and over all samples, with 'mlm_acc' and
        'nsp_acc' where the objective has accuracies; 'nsp_loss' and 'nsp_acc' only with next
        sentences.
    """
    started = time.perf_counter()
    names, sums = objective.names, np.zeros(objective.num_sums)
    counts = np.zeros(len(names))
    for batch in itertools.islice(loader.epoch(0), max_batches):
        if guard is not None:
            guard.check()
        if batch is None:
            continue
        batch_counts = np.array(objective.counts(batch))
        values = np.array([array.asscalar() for array in objective.terms(batch)], np.float64)
        values[: len(names)] *= batch_counts  # means, which become sums
        counts += batch_counts
        sums += values
    sums = (workers or Workers()).sum(np.concatenate([sums, counts]))
    report = objective.named(sums[: objective.num_sums], sums[objective.num_sums :])
    logger.info('Eval %s', formatted_terms(report, losses='.3f', accuracies='.1f'))
    logger.info('Eval cost=%.1fs', time.perf_counter() - started)
    return -sum(report[f'{name}_loss'] for name in names), {'eval': report}


def formatted_terms(record, losses, accuracies):
    """Format the losses and accuracies of a record as in GluonNLP's log."""
    kinds = ('loss', losses, 1), ('acc', accuracies, 100)
    names = [(f'{term}_{kind}', form, scale) for term in TERMS for kind, form, scale in kinds]
    return '\t'.join([f'{n}={record[n] * scale:{form}}' for n, form, scale in names if n in record])
