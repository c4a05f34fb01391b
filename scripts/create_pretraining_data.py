"""Make samples from text for the pre-training of BERT, or of a similar model.

    python create_pretraining_data.py --input_file sample_text.txt --output_dir out \\
        --vocab book_corpus_wiki_en_uncased --max_length 128 --max_predictions_per_seq 20 \\
        --dupe_factor 5 --masked_lm_prob 0.15 --short_seq_prob 0.1 --verbose

The text has one sentence per line, and blank lines between documents. Flags, defaults and the keys
of the files in ``--output_dir`` are the same as in GluonNLP 0.10's script of this name. With
``--output_file`` the output is TFRecord files, as Google's script writes them. The text is read in
parts of ``--part_mb``, to save memory. A random second segment comes from another document of the
same part. With a vocabulary of RoBERTa or XLM-R, and with ``--masked_lm_only``, the samples have no
next sentences but are packed with full sentences.
"""

import dataclasses
import logging
import os
import tempfile
import time

from tqdm import tqdm

from model_zoo.app import cli
from model_zoo.app.originals import parse_settings
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.settings import SampleSettings
from model_zoo.training.settings import Count, lower_case, setting
from model_zoo.util.files import make_output_dir, temporary_folder
from model_zoo.util.remote import is_file, is_url, join, names_in

# of the samples; more than half of them, since a document's last sentence has no next one
MOST_RANDOM = 0.75

logger = logging.getLogger('create_pretraining_data')

BASE = 'bert_12_768_12'  # its data sets name the vocabularies


class CreateSettings(SampleSettings, max_length=512, max_predictions_per_seq=80):
    """The flags of GluonNLP's script, and this project's."""

    title = 'data'

    input_file: str = setting(
        None, 'text in UTF-8; wildcards and commas for several files', flag={'required': True}
    )
    output_dir: str | None = setting(None, 'folder for part-000.npz, part-001.npz and so on')
    output_file: str | None = setting(
        None, "or Google's TFRecord files, separated by commas", excludes='output_dir'
    )
    json_epochs: bool = setting(
        False, "write pytorch-pretrained-bert's epoch_0.json and so on", needs='output_dir'
    )
    vocab: str | None = setting(None, 'a data set or model, a folder, or a file such as vocab.txt')
    sentencepiece: str | None = setting(None, 'instead of `vocab`', excludes='vocab')
    cased: bool = setting(False, 'keep the case, with `sentencepiece` or a vocab.txt')
    do_lower_case: bool | None = lower_case()
    sp_nbest: int = setting(0, 'sample from this many best segmentations')
    sp_alpha: float = setting(1.0, 'inverse temperature of that sampling')
    random_seed: int = setting(12345)
    dupe_factor: Count = setting(5, 'number of passes over the text')
    verbose: bool = setting(False, 'show a sample')
    num_workers: Count = setting(8, 'processes; at most one per processor')
    num_outputs: Count = setting(1, 'minimum number of files; large texts get more')
    part_mb: float = setting(8.0, "size of a part of the text, in a worker's memory", above=0)
    resume: bool = setting(
        False, 'skip the parts that an earlier run finished', excludes='output_file json_epochs'
    )
    ray: str | None = setting(
        None,
        'make the parts on a Ray cluster, with `resume`: HOST:PORT, auto or local',
        excludes='output_file json_epochs',
    )

    def derived(self):
        return {**super().derived(), 'resume': bool(self.resume or self.ray)}

    def check(self):
        super().check()
        if not (self.output_dir or self.output_file):
            raise InputError('give `output_dir`, for .npz files, or `output_file`, a TFRecord file')


def make_tokenizer(args):
    """Return the vocabulary's tokenizer, and whether its models predict next sentences."""
    from bert.tokenizer import BertSPTokenizer
    from model_zoo.app.model_choice import family_of
    from model_zoo.pretrained import get_entry, is_alias, is_place, local_path, resolve_alias
    from model_zoo.registry import get_family, list_families
    from model_zoo.tasks.tables import check_files
    from model_zoo.tokenization.vocab_file import find_vocab_file

    lowers = False if args.cased else args.do_lower_case
    if args.sentencepiece:
        check_files(args, 'sentencepiece')
        path, _ = local_path(args.sentencepiece)
        options = {'num_best': args.sp_nbest, 'alpha': args.sp_alpha, 'lower': lowers is not False}
        return BertSPTokenizer(path, **options), True
    if not args.vocab:
        raise InputError('give `vocab`, a name or a file, or `sentencepiece`')
    if os.path.exists(args.vocab) or is_place(args.vocab):
        file = find_vocab_file(path=args.vocab, do_lower_case=lowers)
        named = None if is_file(args.vocab) else family_of(args.vocab)
    else:
        name = resolve_alias(args.vocab) if is_alias(args.vocab) else (BASE, args.vocab)
        try:
            file = find_vocab_file(*name)
        except UnknownNameError as error:
            raise InputError(
                f'{args.vocab!r} is neither a file nor a data set: {error}', field='vocab'
            ) from error
        named = get_entry(*name).family
        if lowers not in (None, file.do_lower_case):
            logger.warning('the vocabulary %s decides whether text is lower-cased', args.vocab)
    families = [family for family in list_families() if 'bert' in (family.name, family.variant_of)]
    if named is None:
        bert = get_family('bert')
        family = next((each for each in (bert, *families) if each.takes_vocab(file)), bert)
    else:
        family = get_family(named)
        if family not in families:
            raise InputError(f'{args.vocab!r}: {named} models have no masked words', field='vocab')
    return family.make_tokenizer(file), family.predicts_next


def show_sample(path, tokenizer):
    """Log the first sample of a file."""
    from model_zoo.tasks.pretraining.files import read_shard

    samples = read_shard(path, tokenizer.vocab)
    length, masks = samples.valid_lengths[0], int(samples.masked_lm_weights[0].sum())
    tokens = tokenizer.convert_ids_to_tokens(samples.input_ids[0, :length])
    labels = tokenizer.convert_ids_to_tokens(samples.masked_lm_ids[0, :masks])
    logger.debug('a sample of %s:', path)
    logger.debug('tokens: %s', ' '.join(tokens))
    logger.debug('segment_ids: %s', samples.segment_ids[0, :length].tolist())
    logger.debug('masked_lm_positions: %s', samples.masked_lm_positions[0, :masks].tolist())
    logger.debug('masked_lm_labels: %s', ' '.join(labels))
    logger.debug('is_random_next: %s', bool(samples.next_sentence_labels[0]))


def shards_in(folder):
    """Return the paths of the .npz files in a folder, in their order."""
    names = sorted(names_in(folder), key=lambda name: (len(name), name))
    return [join(folder, name) for name in names if name[:5] == 'part-']


def create(args, maker, folder, seed):
    """Write the .npz files; return the counts of their contents."""
    from model_zoo.tasks.pretraining.create import create_shards

    with tqdm(unit='file', disable=None) as bar:

        def progress(done, parts, facts):
            bar.total = parts
            bar.set_postfix(samples=facts.samples, refresh=False)
            bar.update(done - bar.n)

        names = 'num_outputs', 'num_workers', 'resume', 'ray'
        options = {name: getattr(args, name) for name in names}
        options['part_bytes'] = max(1, int(args.part_mb * 2**20))
        return create_shards(maker, folder, seed=seed, progress=progress, **options)


def create_all(args, maker):
    """Write the files of the flags' format; return the first one, and all counts."""
    from model_zoo.tasks.pretraining.create import ShardFacts
    from model_zoo.tasks.pretraining.files import read_shard, write_epoch, write_tfrecords

    total, folder = ShardFacts(), os.path.expanduser(args.output_dir or '')
    files = [os.path.expanduser(path) for path in (args.output_file or '').split(',') if path]
    if args.json_epochs:
        files = [join(folder, f'epoch_{number}.json') for number in range(args.dupe_factor)]
    elif not files:
        facts = create(args, maker, folder, args.random_seed)
        return shards_in(folder)[0], facts
    for path in files:
        make_output_dir(os.path.dirname(path) or '.')
    first = os.path.dirname(files[0]) or '.'
    first = tempfile.gettempdir() if is_url(first) else first
    for number, path in enumerate(files if args.json_epochs else files[:1]):
        with temporary_folder(first, os.path.basename(path)) as parts:
            total += create(args, maker, parts, args.random_seed + number)
            samples = map(read_shard, shards_in(parts))
            if args.json_epochs:
                write_epoch(path, samples, maker.vocab, args.max_length)
            else:
                write_tfrecords(files, samples, args.max_length, args.max_predictions_per_seq)
    return files[0], total


def main(argv=None):
    args = parse_settings(CreateSettings, __doc__, argv, 'create_pretraining_data')
    from model_zoo.tasks.masked_lm import make_sample_options
    from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, matching_files

    cli.setup_logging(verbose=args.verbose)
    corpus = Corpus(matching_files(args.input_file))
    tokenizer, has_pairs = make_tokenizer(args)
    options = make_sample_options(args, has_pairs and not args.masked_lm_only)
    if args.json_epochs:  # a file for each pass
        options = dataclasses.replace(options, dupe_factor=1)
    logger.info('%d files of text, %.1f MB', len(corpus.files), corpus.num_bytes / 2**20)
    started = time.perf_counter()
    path, facts = create_all(args, SampleMaker(corpus, tokenizer, options))
    if args.verbose:
        show_sample(path, tokenizer)
    if facts.random_next > MOST_RANDOM * facts.samples:
        logger.warning(
            'the second sentence of %.0f%% of the samples is a random one, as documents of one '
            'line have no next: put one sentence on a line, and blank lines between documents only',
            100 * facts.random_next / facts.samples,
        )
    seconds = time.perf_counter() - started
    logger.info(
        '%d samples of %.1f tokens in %s, %.1f%% of them masked, %.1f%% with a random next '
        'sentence; %.1f s, %.0f samples/s',
        facts.samples,
        facts.tokens / facts.samples,
        args.output_file or args.output_dir,
        100 * facts.masks / facts.tokens,
        100 * facts.random_next / facts.samples,
        seconds,
        facts.samples / seconds,
    )


if __name__ == '__main__':
    cli.run_script(main)
