"""The settings of the tasks; the tasks themselves, which need MXNet, are in the other modules."""

import glob
import os

from ..errors import InputError
from ..training import settings as base
from ..training.settings import Count, lower_case, setting, token_limit
from ..util.choices import POOLINGS

__all__ = [
    'LOSSES',
    'ChoiceSettings',
    'ClassificationSettings',
    'LanguageModelSettings',
    'MaskedLMSettings',
    'PretrainingSettings',
    'SampleSettings',
    'SentenceSettings',
    'SquadSettings',
    'StorySettings',
    'TaggingSettings',
]

#: loss of a sentence encoder -> the kinds of examples that it can learn from
LOSSES = {'in_batch': ('pairs', 'triplets'), 'cosine': ('scored',), 'triplet': ('triplets',)}
#: buckets of batches of `batch_tokens`, which only pay if a batch's lengths are alike
NUM_BUCKETS = 10


class ClassificationSettings(
    base.DeploySettings, base.FinetuneSettings, base.FileSettings, lr=5e-5
):
    """Settings of classification, with the defaults of GluonNLP 0.8's finetune_classifier.py."""

    title = 'task'

    task_name: str | None = setting(None, 'such as MRPC; custom for your own files', 'usual')
    text_columns: list[str] | None = setting(
        None, 'one or two text columns', 'mutable', excludes='text_column text_pair_column'
    )
    text_column: str | None = setting(None, 'name or number of the text column', 'usual mutable')
    text_pair_column: str | None = setting(None, 'of pairs', 'usual mutable', needs='text_column')
    label_column: str | None = setting(None, 'name or number; default: usual ones', 'usual mutable')
    labels: list[str] | None = setting(
        None, "in the outputs' order; default: the model's, or the training file's, sorted"
    )
    skip_empty: bool = setting(False, 'leave out rows without a text or a label')
    header: bool = setting(False, 'files with numbered columns begin with a header')
    regression: bool = setting(False, 'custom task: the labels are numbers', 'usual')
    decimal: str = setting('.', "mark in a regression's labels", 'mutable', choices=['.', ','])
    multi_label: bool = setting(
        False, 'any number of labels a text, separated by commas', 'usual', excludes='regression'
    )
    method: str = setting(
        'full',
        "full: train the whole model; linear: only a classifier of the encoder's vectors",
        'usual',
        choices=['full', 'linear'],
    )
    class_weights: list[str] | None = setting(
        None, 'balanced, or weights such as bad=3 good=1', excludes='regression multi_label'
    )
    sort_labels: bool = setting(False, "a new model's labels in alphabetical order", 'mutable')
    max_length: int = token_limit(128)
    do_lower_case: bool | None = lower_case()

    def derived(self):
        values, labels = super().derived(), self.labels
        values['task_name'] = self.task_name or 'custom'
        if labels is not None and len(labels) == 1:
            values['labels'] = [label.strip() for label in labels[0].split(',')]
        if self.method == 'linear':  # the head is fitted: all else is as after a training
            values['training_steps'] = 1
        return values

    def check(self):
        super().check()
        for other in ('freeze', 'comm_backend') if self.method == 'linear' else ():
            if vars(self)[other] is not None:
                raise InputError(f'linear and `{other}` exclude each other', field='method')


class ChoiceSettings(base.FileSettings, base.FinetuneSettings, lr=5e-5, seed=42):
    """Settings of multiple choice, with the defaults of pytorch-pretrained-bert's run_swag.py."""

    max_length: int = token_limit(128)
    do_lower_case: bool | None = setting(False, 'default: as the vocabulary requires')


class StorySettings(
    base.SetSettings,
    base.InferenceSettings,
    base.ModelSettings,
    base.BatchTokensSettings,
    base.BackendSettings,
    base.ScheduleSettings,
    model='gpt_12_768_12',
    optimizer='openaiadam',
    batch_size=8,
    dev_batch_size=16,
    lr=6.25e-5,
    epsilon=1e-8,
    warmup_ratio=0.002,
    seed=42,
):
    """Settings of stories' endings, with the defaults of pytorch-pretrained-bert's script."""

    title = 'task'

    n_valid: int = setting(374, 'number of held-out stories; 0: no dev set', at_least=0)
    lm_coef: float = setting(0.9, 'weight of the language model loss', at_least=0)


class SquadSettings(
    base.DeploySettings,
    base.FinetuneSettings,
    dev_batch_size=24,
    lr=5e-5,
    epsilon=None,
    wd=0.0,
    log_interval=50,
    num_calib_batches=10,
):
    """Settings of question answering, with the defaults of GluonNLP's finetune_squad.py."""

    title = 'task'

    version_2: bool = setting(False, 'SQuAD 2.0', 'usual', aliases='version_2_with_negative')
    f1_characters: bool | None = setting(None, 'F1 over characters; default: for KorQuAD, DRCD')
    strict: bool = setting(False, 'refuse files with questions that cannot be used')
    null_score_diff_threshold: float | None = setting(
        None, 'by which "no answer" must be better; default: what suits the dev set', 'mutable'
    )
    max_length: int = token_limit(384)
    doc_stride: Count = setting(128, 'tokens between the starts of two windows', 'usual')
    max_query_length: Count = setting(64, 'in tokens; longer questions are truncated')
    n_best_size: Count = setting(20, 'number of answers to keep per question')
    max_answer_length: Count = setting(30, 'longest answer, in tokens')
    debug: bool = setting(False, 'use 10000 questions to train, 100 to evaluate')
    uncased: bool = setting(False, 'check that the vocabulary is lower-case')
    do_lower_case: bool | None = lower_case()

    def derived(self):
        values = super().derived()
        if self.epsilon is None:
            # MXNet's defaults, which GluonNLP's script doesn't change
            values['epsilon'] = 1e-8 if self.optimizer.lower() == 'adam' else 1e-6
        return values


class TaggingSettings(
    base.FileSettings, base.FinetuneSettings, lr=5e-5, epochs=4, dev_batch_size=32, seed=13531
):
    """Settings of tagging, with the defaults of GluonNLP 0.8's finetune_ner.py."""

    text_column: str | None = setting(
        None,
        'of words or texts: a name or number; default: 0',
        'usual mutable',
        aliases='word_column',
    )
    label_column: str | None = setting(
        None, 'default: a usual name, or -1, the last', 'usual mutable', aliases='tag_column'
    )
    no_test_labels: bool = setting(False, 'the test file has no label column')
    labels: list[str] | None = setting(None, "default: the model's, or the training file's")
    max_length: int = token_limit(180, 'in tokens; longer sentences are read in windows')
    dropout_prob: float | None = setting(None, "of the head; default: BERT's", at_least=0, below=1)
    cased: bool | None = setting(None, 'cased English, not uncased', excludes='dataset')

    def derived(self):
        values = super().derived()
        if self.cased is not None:
            values['dataset'] = f'book_corpus_wiki_en_{"cased" if self.cased else "uncased"}'
        return values


class SentenceSettings(
    base.FileSettings,
    base.FinetuneSettings,
    lr=2e-5,
    dev_batch_size=32,
    epochs=1,
    model='bert_6_384_12',
):
    """Settings of a sentence encoder."""

    text_columns: list[str] | None = setting(None, 'two or three; default: the usual names')
    score_column: str | None = setting(None, 'default: score, if it exists', 'usual')
    skip_empty: bool = setting(False, 'leave out rows without a text')
    max_score: float | None = setting(None, 'of equal texts; default: the highest found', above=0)
    loss: str | None = setting(None, 'default: by the examples', 'usual', choices=list(LOSSES))
    scale: float = setting(20.0, 'for in_batch: factor of the cosines', above=0)
    margin: float = setting(0.5, 'for triplet: margin between the cosines', above=0)
    pooling: str | None = setting(None, "default: the model's, else mean", choices=POOLINGS)
    normalize: bool = setting(True, 'the saved model returns vectors of length 1')
    max_length: int = token_limit(128)


class LanguageModelSettings(
    base.SetSettings,
    base.ModelSettings,
    base.BackendSettings,
    base.ScheduleSettings,
    optimizer='openaiadam',
    batch_size=8,
    lr=2.5e-4,
    epsilon=1e-8,
    warmup_ratio=0.01,
    lr_schedule='warmup_cosine',
):
    """Settings for training a language model on a text."""

    title = 'text'

    text_column: str | None = setting(None, 'of the texts, if a file is a table', 'usual mutable')
    max_length: int | None = token_limit(None, "of a block; default: the model's", 'block_size')
    tgt_len: Count | None = setting(None, "of Transformer-XL's segments; default: the model's")
    ext_len: int | None = setting(None, 'positions of a segment that the next one repeats')
    mem_len: int | None = setting(None, "positions in the model's memory")
    split_special_tokens: bool = setting(False, 'read <|endoftext|> and the like as other text')
    learn_vocab: Count | None = setting(
        None, 'at most N byte pairs or words', 'usual', excludes='vocab_file', needs='from_scratch'
    )
    cutoffs: list[int] | None = setting(
        None, "splits of Transformer-XL's vocabulary", flag={'nargs': '*'}, needs='from_scratch'
    )

    def derived(self):
        from ..tokenization.vocab_file import find_vocab_file

        values = super().derived()
        if self.vocab_file and os.path.isdir(self.vocab_file):
            values['vocab_file'] = find_vocab_file(None, path=self.vocab_file).path
        return values


class SampleSettings(base.Settings):
    """Settings for making samples from a text."""

    title = 'samples that are made from a text'

    masked_lm_only: bool | None = setting(None, 'full sentences, not pairs; default: by the model')
    max_length: int = token_limit(128, at_least=5)
    max_predictions_per_seq: Count = setting(20, 'masks per sample')
    masked_lm_prob: float = setting(0.15, 'share of masked tokens', above=0, at_most=1)
    short_seq_prob: float = setting(0.1, 'share of shorter samples', at_least=0, at_most=1)
    whole_word_mask: bool = setting(False, 'mask whole words', aliases='do_whole_word_mask')


def _samples_in(path):
    """Return a path, or a pattern of the files of samples in a folder."""
    if path is None or not os.path.isdir(path):
        return path
    is_original = glob.glob(os.path.join(glob.escape(path), 'epoch_*[0-9].json'))
    return os.path.join(path, 'epoch_*[0-9].json' if is_original else '*.npz')


class MaskedLMSettings(
    SampleSettings,
    base.SetSettings,
    base.ModelSettings,
    base.BatchTokensSettings,
    base.BackendSettings,
    base.TrainingSettings,
    model='bert_12_768_12',
    dev_batch_size=32,
    seed=42,
):
    """Settings for continuing BERT's pre-training on a text, or on samples made from it."""

    title, by_rows = 'data', ('epochs', 'batch_size')

    pregenerated_data: str | None = setting(
        None, 'instead of `train_file`: .npz or epoch_N.json, or their folder', 'usual'
    )
    dev_data: str | None = setting(None, '.npz, or their folder', 'mutable', excludes='dev_file')
    text_column: str | None = setting(None, 'of the texts, if a file is a table', 'usual mutable')
    do_lower_case: bool | None = lower_case()
    num_workers: int = setting(1, 'processes; 0: a thread of this one', 'mutable', at_least=0)

    def derived(self):
        samples = {name: vars(self)[name] for name in ('pregenerated_data', 'dev_data')}
        return {**super().derived(), **{n: _samples_in(path) for n, path in samples.items()}}


class PretrainingSettings(
    SampleSettings,
    base.ModelSettings,
    base.BatchTokensSettings,
    base.BackendSettings,
    base.OptimizerSettings,
    base.OutputSettings,
    base.DeviceSettings,
    model='bert_12_768_12',
    max_length=512,
    max_predictions_per_seq=80,
    lr=1e-4,
    warmup_ratio=0.01,
    seed=0,
    output_dir='./ckpt_dir',
    ckpt_interval=25000,
    log_interval=250,
):
    """The flags of GluonNLP's pre-training scripts, and further ones."""

    title = 'data'

    train_file: str | None = setting(None, '.npz files; wildcards, commas', 'usual', aliases='data')
    dev_file: str | None = setting(None, 'for evaluation', 'usual mutable', aliases='data_eval')
    batch_size: Count | None = setting(None, 'per GPU or worker; default: 8', 'usual size')
    total_batch_size: Count | None = setting(
        None, 'of an update, on all GPUs', 'usual mutable', excludes='batch_tokens'
    )
    batch_size_eval: Count | None = setting(
        None, 'per worker; default: 8', 'mutable', aliases='dev_batch_size eval_batch_size'
    )
    total_batch_size_eval: Count | None = setting(None, '`batch_size_eval` x workers', 'mutable')
    max_eval_steps: Count | None = setting(None, 'maximum number of evaluation batches', 'mutable')
    use_avg_len: bool = setting(False, '`batch_size` counts tokens', excludes='batch_tokens')
    num_buckets: Count = setting(1, f'of lengths; with `batch_tokens` {NUM_BUCKETS} instead of 1')
    circle_length: Count = setting(2, 'number of shards to mix at a time')
    synthetic_data: bool = setting(False, 'random words, to measure speed', excludes='batch_tokens')
    dummy_data_len: Count | None = setting(None, 'length of `synthetic_data`')
    raw: bool = setting(False, '`train_file` and `dev_file` are text: make samples on the fly')
    eval_use_npz: bool = setting(False, 'with `raw`: `dev_file` is .npz', 'mutable')
    cased: bool = setting(False, 'with `raw`: keep upper case, whatever the vocabulary')
    num_dataset_workers: Count = setting(4, 'with `raw`: processes that make samples', 'mutable')
    training_steps: Count = setting(20, None, 'usual total', aliases='num_steps num_train_steps')
    accumulate: Count = setting(1, 'number of batches per update', 'number')
    no_compute_acc: bool = setting(False, "don't compute accuracies")
    start_step: Count | None = setting(None, 'continue from the checkpoint of this step', 'mutable')
    phase2: bool = setting(False, 'begin where the first phase ended', needs='phase1_num_steps')
    phase1_num_steps: Count | None = setting(
        None, '`training_steps` of the first phase in this `output_dir`', needs='phase2'
    )
    eval_interval: Count = setting(50000, 'updates between evaluations', 'mutable')
    profile: str | None = setting(None, 'file for the profile of updates 10 to 13', 'mutable')
    verbose: bool = setting(False, None, 'mutable')
    pretrained: bool = setting(False, 'start from the weights of `model`', excludes='from_scratch')

    def derived(self):
        values = super().derived()
        if self.batch_tokens is not None:
            values.update(batch_size=self.batch_tokens, use_avg_len=True)
            if not self.is_given('num_buckets'):
                values['num_buckets'] = NUM_BUCKETS
        if self.dummy_data_len is not None:
            values.update(synthetic_data=True, max_length=self.dummy_data_len)
        if self.phase2 and self.start_step is None:
            values['start_step'] = self.phase1_num_steps
        return values

    def check(self):
        super().check()
        if not (self.train_file or self.dev_file or self.synthetic_data):
            raise InputError('give `train_file` to train, `dev_file` to evaluate, or both')
        if self.phase2 and self.start_step < self.phase1_num_steps:
            first = f'`phase1_num_steps` {self.phase1_num_steps}'
            problem = f'{self.start_step} counts both phases, and must be at least {first}'
            raise InputError(problem, field='start_step')
