"""The settings of the tasks; the tasks themselves, which need MXNet, are in the other modules."""

import glob
import os

from ..errors import InputError
from ..training.settings import (
    YES_OR_NO,
    BackendSettings,
    BatchTokensSettings,
    BertSettings,
    DeploySettings,
    DeviceSettings,
    FileSettings,
    FinetuneSettings,
    InferenceSettings,
    NamedModelSettings,
    OptimizerSettings,
    OutputSettings,
    ScheduleSettings,
    SetSettings,
    Settings,
    TrainingSettings,
    lower_case,
    setting,
    settings,
    token_limit,
)
from ..util.choices import GLUONNLP, ORIGINALS, POOLINGS

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


def text_column():
    """The field with the column of texts."""
    return setting(None, 'column of the texts, if a file is a table', usual=True, on_resume='free')


#: loss of a sentence encoder -> the kinds of examples that it can learn from
LOSSES = {'in_batch': ('pairs', 'triplets'), 'cosine': ('scored',), 'triplet': ('triplets',)}
#: buckets of batches of `batch_tokens`, which only pay if a batch's lengths are alike
NUM_BUCKETS = 10


@settings(
    lr=5e-5,
    helps={
        'epochs': 'times to read the training set; may be a fraction; up to 2,000 rows of your own '
        'have more by default',
        'batch_size': 'smaller by default for up to 2,000 rows of your own',
        'data_dir': "folder with the task's TSV files; default: GluonNLP downloads them",
        'train_file': 'your own rows to train on: TSV, .csv, .jsonl or .parquet, or a folder that '
        'datasets has saved',
        'dev_file': 'your own rows to score each epoch on',
        'test_file': 'your own rows to predict',
        'dev_split': 'instead of `dev_file`: hold out this share of `train_file`, such as 0.1, '
        'stratified by label; `seed` selects the examples',
    },
)
class ClassificationSettings(DeploySettings, FinetuneSettings, FileSettings):
    """Settings of classification, with the defaults of GluonNLP 0.8's finetune_classifier.py."""

    title = 'task'

    task_name: str | None = setting(
        None,
        'a known task, such as MRPC, of which an unknown name lists all; or custom, the default '
        'where files are given',
        usual=True,
    )
    text_columns: list[str] | None = setting(
        None,
        'custom task: name or number of one or two text columns; default: the usual names',
        on_resume='free',
        excludes=('text_column', 'text_pair_column'),
    )
    text_column: str | None = setting(
        None, 'custom task: name or number of the text column', usual=True, on_resume='free'
    )
    text_pair_column: str | None = setting(
        None,
        'custom task: the column of the second text of a pair',
        usual=True,
        on_resume='free',
        needs=('text_column',),
    )
    label_column: str | None = setting(
        None,
        'custom task: name or number (from 0) of the label column; default: the usual names',
        usual=True,
        on_resume='free',
    )
    labels: list[str] | None = setting(
        None,
        "names of the model's outputs in order, also as a,b,c; default: the model's own; for "
        "a new custom task the training file's labels, sorted",
    )
    skip_empty: bool = setting(False, 'custom task: leave out rows without a text or a label')
    header: bool = setting(False, 'files with numbered columns begin with a header')
    regression: bool = setting(False, 'custom task: the labels are numbers', usual=True)
    multi_label: bool = setting(
        False,
        'custom task: a text has any number of labels, separated by commas or as a list',
        usual=True,
        excludes=('regression',),
    )
    method: str = setting(
        'full',
        "full: train the whole model; linear: fit a linear classifier to the encoder's vectors, in "
        'seconds',
        choices=['full', 'linear'],
        usual=True,
        excludes=('freeze', 'comm_backend'),
    )
    class_weights: list[str] | None = setting(
        None,
        "balanced, for classes of unequal numbers of rows, or labels' weights in the loss, such as "
        'bad=3 good=1',
        excludes=('regression', 'multi_label'),
    )
    label_order: str = setting(
        GLUONNLP,
        "order of a new model's labels: GluonNLP's, or that of pytorch-pretrained-BERT and Google",
        choices=[GLUONNLP, ORIGINALS],
        on_resume='free',
    )
    max_length: int = token_limit(128)
    do_lower_case: bool | None = lower_case()
    do_predict: bool = setting(
        False,
        'also write test_results.tsv for the test set: one line per sample, one column per '
        'class; alone: `only_inference` on the test set',
        flag=YES_OR_NO,
        on_resume='free',
    )
    do_eval: bool | None = setting(
        None,
        'evaluate; training does so anyway; alone: `only_inference`',
        flag=YES_OR_NO,
        on_resume='free',
    )

    def derived(self):
        values, labels = super().derived(), self.labels
        if labels is not None and len(labels) == 1:
            values['labels'] = [label.strip() for label in labels[0].split(',')]
        return values


@settings(lr=5e-5, seed=42)
class ChoiceSettings(FileSettings, FinetuneSettings):
    """Settings of multiple choice, with the defaults of pytorch-pretrained-bert's run_swag.py."""

    max_length: int = token_limit(128)
    do_lower_case: bool | None = setting(False, 'default: as the vocabulary requires')


@settings(
    model='gpt_12_768_12',
    optimizer='openaiadam',
    batch_size=8,
    dev_batch_size=16,
    lr=6.25e-5,
    epsilon=1e-8,
    warmup_ratio=0.002,
    seed=42,
    helps={
        'train_file': 'CSV file of the Story Cloze Test',
        'dev_file': 'default: stories held out from `train_file`',
        'test_file': 'stories whose endings to predict',
    },
)
class StorySettings(
    SetSettings,
    InferenceSettings,
    NamedModelSettings,
    BatchTokensSettings,
    BackendSettings,
    ScheduleSettings,
):
    """Settings of stories' endings, with the defaults of pytorch-pretrained-bert's script."""

    title = 'task'

    n_valid: int = setting(374, 'number of held-out stories; 0: no dev set', at_least=0)
    lm_coef: float = setting(0.9, 'weight of the language model loss', at_least=0)


# MXNet's own, which differ by optimizer and are what GluonNLP's script leaves them at
EPSILONS = {'adam': 1e-8}


@settings(
    dev_batch_size=24,
    lr=5e-5,
    epsilon=None,
    wd=0.0,
    log_interval=50,
    num_calib_batches=10,
    helps={
        'train_file': "file in SQuAD's JSON format; default: GluonNLP downloads it",
        'dev_file': 'the same to evaluate on; default: GluonNLP downloads it, or none with '
        '`train_file`',
        'test_file': 'questions to answer with the trained model',
    },
)
class SquadSettings(DeploySettings, FinetuneSettings):
    """Settings of question answering, with the defaults of GluonNLP's finetune_squad.py."""

    title = 'task'

    version_2: bool = setting(
        False,
        'SQuAD 2.0: a question may have no answer',
        usual=True,
        flag=YES_OR_NO,
        aliases=('version_2_with_negative',),
    )
    f1_characters: bool | None = setting(
        None,
        'F1 over characters, for languages without spaces between words; default: if the '
        'file to evaluate on is called KorQuAD or DRCD',
        flag=YES_OR_NO,
    )
    strict: bool = setting(
        False, 'refuse files with questions that cannot be used, instead of skipping these'
    )
    null_score_diff_threshold: float = setting(
        0.0,
        'answer "no answer" if its score exceeds the best answer\'s by more than this; '
        'usually -1 to -5',
    )
    max_length: int = token_limit(384)
    doc_stride: int = setting(
        128, 'tokens between the starts of two windows', at_least=1, usual=True
    )
    max_query_length: int = setting(64, 'in tokens; longer questions are truncated', at_least=1)
    n_best_size: int = setting(20, 'number of answers to keep per question', at_least=1)
    max_answer_length: int = setting(30, 'maximum length, in tokens', at_least=1)
    debug: bool = setting(False, 'use 10000 questions to train, 100 to evaluate')
    uncased: bool = setting(False, 'check that the vocabulary is lower-case')
    do_lower_case: bool | None = lower_case()

    def derived(self):
        values = super().derived()
        if self.epsilon is None:
            values['epsilon'] = EPSILONS.get(self.optimizer.lower(), 1e-6)
        return values


@settings(lr=5e-5, epochs=4, dev_batch_size=32, seed=13531)
class TaggingSettings(FileSettings, FinetuneSettings):
    """Settings of tagging, with the defaults of GluonNLP 0.8's finetune_ner.py."""

    word_column: int = setting(
        0, 'column of the words, from 0; negative numbers count from the end', usual=True
    )
    label_column: int = setting(-1, 'column of the labels, counted in the same way', usual=True)
    tag_column: str | None = setting(
        None,
        "name of the labels' column in JSON, Parquet, datasets and rows; default: labels, tags, "
        'ner_tags, pos_tags, upos or chunk_tags',
    )
    no_test_labels: bool = setting(False, 'the test file has no label column')
    labels: list[str] | None = setting(None, "default: the model's, or the training file's")
    max_length: int = token_limit(
        180, 'in tokens, including special tokens; longer sentences are read in windows'
    )
    dropout_prob: float | None = setting(
        None, "dropout of the last layer; default: BERT's", at_least=0, below=1
    )
    cased: bool | None = setting(
        None,
        'use the weights for cased English, not uncased',
        flag=YES_OR_NO,
        excludes=('dataset',),
    )

    def derived(self):
        values = super().derived()
        if self.cased is not None:
            values['dataset'] = f'book_corpus_wiki_en_{"cased" if self.cased else "uncased"}'
        return values


@settings(lr=2e-5, dev_batch_size=32, epochs=1, model='bert_6_384_12')
class SentenceSettings(FileSettings, FinetuneSettings):
    """Settings of a sentence encoder."""

    text_columns: list[str] | None = setting(
        None,
        'names of two or three columns; default: sentence1 and sentence2; anchor, positive '
        'and negative; or query and answer',
    )
    score_column: str | None = setting(
        None, "column of the pairs' scores; default: score, if it exists", usual=True
    )
    skip_empty: bool = setting(False, 'leave out rows without a text')
    max_score: float | None = setting(
        None,
        'score of two identical texts; default: the highest of the training set',
        above=0,
    )
    loss: str | None = setting(
        None,
        'default: cosine for scored pairs, in_batch for others',
        choices=list(LOSSES),
        usual=True,
    )
    scale: float = setting(20.0, 'for in_batch: factor of the cosines', above=0)
    margin: float = setting(0.5, 'for triplet: margin between the cosines', above=0)
    pooling: str | None = setting(
        None,
        "how to combine the pieces' vectors; default: the model's own, else mean",
        choices=POOLINGS,
    )
    normalize: bool = setting(
        True, 'the saved model returns vectors of length 1; no loss depends on it', flag=YES_OR_NO
    )
    max_length: int = token_limit(128)


@settings(
    optimizer='openaiadam',
    batch_size=8,
    lr=2.5e-4,
    epsilon=1e-8,
    warmup_ratio=0.01,
    lr_schedule='warmup_cosine',
    helps={
        'train_file': 'text',
        'dev_file': 'text whose perplexity to measure',
        'test_file': 'text whose perplexity the trained model is measured by',
    },
)
class LanguageModelSettings(SetSettings, NamedModelSettings, BackendSettings, ScheduleSettings):
    """Settings for training a language model on a text."""

    title = 'text'

    text_column: str | None = text_column()
    max_length: int | None = token_limit(
        None, "tokens per block; default: the model's context", aliases=('block_size',)
    )
    tgt_len: int | None = setting(
        None, "length of Transformer-XL's segments; default: the model's own", at_least=1
    )
    ext_len: int | None = setting(None, 'positions of a segment that the next one repeats')
    mem_len: int | None = setting(None, "positions in the model's memory")
    split_special_tokens: bool = setting(
        False,
        "read special tokens in a text, such as GPT-2's <|endoftext|> between documents, as "
        'any other text, like the originals; by default each is its own id',
    )
    learn_vocab: int | None = setting(
        None,
        'with `from_scratch`: learn a vocabulary from the training text, with at most this '
        'many byte pairs for GPT-2 or words for Transformer-XL (its default: all words)',
        at_least=1,
        flag={'metavar': 'SIZE'},
        usual=True,
        excludes=('vocab_file',),
        needs=('from_scratch',),
    )
    cutoffs: list[int] | None = setting(
        None,
        'for Transformer-XL `from_scratch`: where to split the vocabulary; default: by the '
        "words' frequencies",
        flag={'nargs': '*'},
        needs=('from_scratch',),
    )

    def derived(self):
        from ..tokenization.vocab_file import find_vocab_file

        values = super().derived()
        if self.vocab_file and os.path.isdir(self.vocab_file):
            values['vocab_file'] = find_vocab_file(None, path=self.vocab_file).path
        return values


@settings()
class SampleSettings(Settings):
    """Settings for making samples from a text."""

    title = 'samples that are made from a text'

    masked_lm_only: bool | None = setting(
        None,
        'train on masked words alone, without next sentences, with samples of full '
        'sentences; the default for RoBERTa, XLM-R, DistilBERT and ELECTRA',
    )
    max_length: int = token_limit(128, at_least=5)
    max_predictions_per_seq: int = setting(20, 'masks per sample', at_least=1)
    masked_lm_prob: float = setting(0.15, 'share of masked tokens', above=0, at_most=1)
    short_seq_prob: float = setting(
        0.1, 'share of documents cut into shorter samples', at_least=0, at_most=1
    )
    whole_word_mask: bool = setting(
        False,
        'mask all pieces of a word or none',
        flag=YES_OR_NO,
        aliases=('do_whole_word_mask',),
    )


def _samples_in(path):
    """Return a path, or a pattern of the files of samples in a folder."""
    if path is None or not os.path.isdir(path):
        return path
    is_original = glob.glob(os.path.join(glob.escape(path), 'epoch_*[0-9].json'))
    return os.path.join(path, 'epoch_*[0-9].json' if is_original else '*.npz')


@settings(
    dev_batch_size=32,
    seed=42,
    helps={
        'train_file': 'text; wildcards and commas for several files',
        'dev_file': 'text to evaluate on after each epoch, always with the same masks',
        'test_file': 'text to evaluate the trained model on',
    },
)
class MaskedLMSettings(
    SampleSettings,
    SetSettings,
    BertSettings,
    BatchTokensSettings,
    BackendSettings,
    TrainingSettings,
):
    """Settings for continuing BERT's pre-training on a text, or on samples made from it."""

    title = 'data'

    pregenerated_data: str | None = setting(
        None,
        'instead of `train_file`: .npz of create_pretraining_data.py, or '
        "pytorch-pretrained-bert's epoch_N.json, one for each epoch; or their folder",
        usual=True,
    )
    dev_data: str | None = setting(
        None,
        'instead of `dev_file`: .npz, or their folder',
        on_resume='free',
        excludes=('dev_file',),
    )
    text_column: str | None = text_column()
    do_lower_case: bool | None = lower_case()
    num_workers: int = setting(
        1,
        'number of processes that make samples; 0: a thread of this one',
        at_least=0,
        on_resume='free',
    )

    def derived(self):
        return {
            **super().derived(),
            'pregenerated_data': _samples_in(self.pregenerated_data),
            'dev_data': _samples_in(self.dev_data),
        }


@settings(
    model='bert_12_768_12',
    max_length=512,
    max_predictions_per_seq=80,
    lr=1e-4,
    warmup_ratio=0.01,
    seed=0,
    output_dir='./ckpt_dir',
    ckpt_interval=25000,
    log_interval=250,
    helps={
        'ckpt_interval': 'in updates',
        'keep_checkpoints': 'number of newest checkpoints to keep',
        'overwrite_output_dir': 'replace the training in `output_dir`',
    },
)
class PretrainingSettings(
    SampleSettings,
    NamedModelSettings,
    BatchTokensSettings,
    BackendSettings,
    OptimizerSettings,
    OutputSettings,
    DeviceSettings,
):
    """The flags of GluonNLP's pre-training scripts, and further ones."""

    title = 'data'

    train_file: str | None = setting(
        None,
        'training data: .npz of create_pretraining_data.py; wildcards, commas',
        usual=True,
        aliases=('data',),
    )
    dev_file: str | None = setting(
        None, 'data to evaluate on', usual=True, on_resume='free', aliases=('data_eval',)
    )
    batch_size: int | None = setting(
        None, 'per GPU or worker; default: 8', at_least=1, usual=True, on_resume='size'
    )
    total_batch_size: int | None = setting(
        None,
        'per update: `batch_size` x GPUs x `accumulate`',
        at_least=1,
        usual=True,
        on_resume='free',
        excludes=('batch_tokens',),
    )
    batch_size_eval: int | None = setting(
        None,
        'per worker; default: 8',
        at_least=1,
        on_resume='free',
        aliases=('dev_batch_size', 'eval_batch_size'),
    )
    total_batch_size_eval: int | None = setting(
        None, '`batch_size_eval` x workers', at_least=1, on_resume='free'
    )
    max_eval_steps: int | None = setting(
        None, 'maximum number of evaluation batches', at_least=1, on_resume='free'
    )
    use_avg_len: bool = setting(
        False,
        '`batch_size` counts tokens, not samples: like `batch_tokens`, but with one bucket '
        'unless `num_buckets` says more',
        excludes=('batch_tokens',),
    )
    num_buckets: int = setting(
        1,
        'make batches of similar lengths; of `batch_tokens` there are '
        f'{NUM_BUCKETS} unless this says more than 1',
        at_least=1,
    )
    circle_length: int = setting(2, 'number of shards to mix at a time', at_least=1)
    synthetic_data: bool = setting(
        False, 'train on random words, to measure speed', excludes=('batch_tokens',)
    )
    dummy_data_len: int | None = setting(None, 'length of `synthetic_data`', at_least=1)
    raw: bool = setting(False, '`train_file` and `dev_file` are text: make samples on the fly')
    eval_use_npz: bool = setting(False, 'with `raw`: `dev_file` is .npz', on_resume='free')
    cased: bool = setting(False, 'with `raw`: keep upper case, whatever the vocabulary')
    num_dataset_workers: int = setting(
        4, 'with `raw`: number of processes that make samples', at_least=1, on_resume='free'
    )
    training_steps: int = setting(
        20,
        'number of updates',
        at_least=1,
        usual=True,
        on_resume='total',
        aliases=('num_steps', 'num_train_steps'),
    )
    accumulate: int = setting(1, 'number of batches per update', at_least=1, on_resume='number')
    no_compute_acc: bool = setting(False, "don't compute accuracies")
    start_step: int | None = setting(
        None, 'continue from the checkpoint of this step', at_least=1, on_resume='free'
    )
    phase2: bool = setting(
        False, 'second phase: start from the end of the first one', needs=('phase1_num_steps',)
    )
    phase1_num_steps: int | None = setting(
        None,
        '`training_steps` of the first phase, whose `output_dir` is the same',
        at_least=1,
        needs=('phase2',),
    )
    eval_interval: int = setting(50000, 'in updates', at_least=1, on_resume='free')
    profile: str | None = setting(
        None, 'profile updates 10 to 13', flag={'metavar': 'FILE'}, on_resume='free'
    )
    verbose: bool = setting(False, on_resume='free')
    pretrained: bool = setting(
        False, 'start from the pretrained weights of `model`', excludes=('from_scratch',)
    )

    def derived(self):
        values = super().derived()
        if self.batch_tokens is not None:
            buckets = NUM_BUCKETS if self.num_buckets == 1 else self.num_buckets
            values.update(batch_size=self.batch_tokens, use_avg_len=True, num_buckets=buckets)
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
            raise InputError(
                f'{self.start_step} counts the steps of both phases: it must be at least '
                f'`phase1_num_steps` {self.phase1_num_steps}',
                field='start_step',
            )
