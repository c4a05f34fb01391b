"""The rows of a set: split into two sets, and encoded as samples."""

import collections
import copy
import itertools
import logging
import math

import numpy as np

from ..batches import Sample
from ..errors import InputError

logger = logging.getLogger(__name__)


#: fields of rows that have their texts
_TEXTS = 'words', 'texts', 'context', 'endings', 'text'


def text_keys(rows):
    """Return a key for each row, which is the same for rows of equal texts."""
    texts = ([getattr(row, name, None) for name in _TEXTS] for row in rows)
    return [hash(repr(found if any(found) else row)) for row, found in zip(rows, texts)]


def hold_out(rows, count, seed=0):
    """Split rows at random, but always in the same way: the remaining and the held-out rows.

    Rows of equal texts stay on one side, unless all are equal.
    """
    keys = text_keys(rows)
    if len(set(keys)) == 1:
        keys = range(len(rows))
    groups, held = collections.defaultdict(list), []
    for number, key in enumerate(keys):
        groups[key].append(number)
    for number in np.random.RandomState(seed).permutation(len(rows)):
        group = groups[keys[number]]
        if len(held) < count and len(held) + len(group) < len(rows):
            held += group
            groups[keys[number]] = []
    return part_rows(rows, set(held))


def stratified(labels, texts, share, seed=0):
    """Return the numbers of the rows to hold out: a share of all rows, and of each label's.

    The rows are sorted by their labels, the rarest first, and cut into as many parts as are held
    out. Of each part the row is taken whose labels lack most. So fewer rows than classes may be
    held out, which scikit-learn's splitters refuse. No label loses its last row, and equal texts
    stay on one side.

    Parameters
    ----------
    labels : sequence of tuple
        The labels of each row.
    texts : sequence
        Something hashable for each row.

    References
    ----------
    Sechidis et al., "On the Stratification of Multi-Label Data", 2011: the rarest label first.
    """
    rows, chosen, count = collections.defaultdict(list), set(), int(share * len(labels) + 0.5)
    for number in np.random.RandomState(seed).permutation(len(labels)).tolist():
        rows[texts[number]].append(number)
    names = {text: [label for number in rows[text] for label in labels[number]] for text in rows}
    left, due = collections.Counter(itertools.chain(*names.values())), collections.Counter()
    ranks = {label: (found, rank) for rank, (label, found) in enumerate(left.items())}
    order = sorted(rows, key=lambda text: sorted(map(ranks.get, names[text])))
    for part in range(count):
        pool = order[part * len(order) // count : (part + 1) * len(order) // count]
        for label in itertools.chain(*map(names.get, pool)):
            due[label] += share
        while len(chosen) <= part and pool:
            text = max(pool, key=lambda text: sum(due[label] - 0.5 for label in names[text]))
            pool.remove(text)
            lost = collections.Counter(names[text])
            if all(left[label] > lost[label] for label in lost):
                chosen.update(rows[text])
                left.subtract(lost)
                due.subtract(lost)
    return chosen


def part_rows(rows, chosen):
    """Return the rows without the chosen numbers, and the chosen ones; lists of the same kind."""
    parts = copy.copy(rows), copy.copy(rows)  # with their attributes, such as the file
    for part, is_chosen in zip(parts, (False, True)):
        part[:] = [row for number, row in enumerate(rows) if (number in chosen) == is_chosen]
    if not all(parts):
        problem = f'{len(chosen)} of {len(rows)} rows leaves nothing on one side'
        raise InputError(problem, field='dev_split')
    return parts


FEW_ROWS, ENOUGH_UPDATES, MOST_EPOCHS = 2000, 120, 20


def fit_to_rows(settings, count):
    """Return settings for `count` rows of the user's own, by name; what is given stays.

    The originals' few epochs in large batches are too few updates for a few hundred rows. Up to
    `FEW_ROWS` there are smaller batches, and about `ENOUGH_UPDATES` updates.
    """
    if count > FEW_ROWS:
        return {}
    size, chosen = settings.batch_size, {}
    if settings.batch_tokens is not None:
        size = max(1, settings.batch_tokens // settings.max_length)
    elif not settings.is_given('batch_size'):
        size = chosen['batch_size'] = 8 if count < 100 else 16
    if settings.given.isdisjoint(['epochs', 'training_steps']):
        examples = ENOUGH_UPDATES * size * (settings.accumulate or 1)
        chosen['epochs'] = min(MOST_EPOCHS, max(settings.epochs, math.ceil(examples / count)))
    for name, value in chosen.items():
        logger.info('%d rows: `%s` %d, unless given', count, name, value)
    return chosen


def warn_if_alike(labels):
    """Warn of labels that differ only in case or blanks."""
    spellings = collections.defaultdict(list)
    for label in labels:
        spellings[''.join(label.split()).casefold()].append(label)
    for names in spellings.values():
        if len(names) > 1:
            text = 'labels that differ only in case or blanks: %s; `labels` can join them'
            logger.warning(text, listed(names))


def warn_of_texts(rows, are_own):
    """Warn of dev sets' rows that are trained on and, of the user's own rows, of equal texts.

    `rows` has the rows of each set by segment, or what a task reads them from later.
    """
    kept = (name for name in rows if isinstance(rows[name], list) and 'test' not in name)
    keys = {name: text_keys(rows[name]) for name in kept}
    known = set(keys.get('train', ()))
    for name in keys.keys() - {'train'}:
        count = sum(key in known for key in keys[name])
        if count:
            shown = count, len(keys[name]), name
            logger.warning('%d of %d rows of the %s set are in the training set, too', *shown)
    texts = [*itertools.chain(*keys.values())]
    repeated = len(texts) - len({*texts})
    if repeated and are_own:
        logger.warning('%d of %d rows repeat the text of another row', repeated, len(texts))


def warn_of_labels(labels, dev_labels):
    """Warn of labels that scores say little of: of each row in the training set and the dev set.

    `dev_labels` is None if there is no dev set.
    """
    in_dev = {*itertools.chain(*(dev_labels or ()))}
    counts = collections.Counter(itertools.chain(*labels, *(dev_labels or ())))
    warn_if_alike(counts)
    single = [label for label in counts if counts[label] == 1]
    missing = [label for label in counts if label not in in_dev and dev_labels is not None]
    unseen = 'labels that the dev set lacks, so that its scores say nothing of them'
    for problem, names in (('labels of a single row', single), (unseen, missing)):
        if names:
            logger.warning('%s: %s', problem, listed(names))


def listed(names, most=10):
    """Return names in quotes with commas between; of many the first ones."""
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return ', '.join(map(repr, names[:most])) + more


def check_room(max_length, special, texts=1):
    """Raise InputError if samples have no room for the special tokens and one of each text."""
    if max_length < special + texts:
        raise InputError(f'{max_length} must be at least {special + texts}', field='max_length')


def warn_if_cut(cut, count, unit, max_length):
    """Warn of the texts that were cut, if any."""
    if cut:
        shown = cut, count, unit, max_length
        logger.warning('%d of %d %s are longer than %d tokens and lose the rest', *shown)


def encode_rows(tokenizer, items, labels, max_length, unit='examples', several=True):
    """Return the samples of rows, encoded as by a pipeline; the log counts those that were cut.

    Parameters
    ----------
    items : sequence of list of (str, str or None)
        A row's text, and the second one of a pair, or `several` of them.
    """
    samples, cut = [], 0
    made = tokenizer.encode_pairs(list(itertools.chain.from_iterable(items)), max_length)
    for item, label in zip(items, labels):
        encodings = list(itertools.islice(made, len(item)))
        ids = tuple(encoding.input_ids for encoding in encodings)
        types = tuple(encoding.token_types for encoding in encodings)
        samples.append(Sample(ids, types, label) if several else Sample(ids[0], types[0], label))
        cut += any(encoding.truncated for encoding in encodings)
    warn_if_cut(cut, len(items), unit, max_length)
    return samples
