"""What can be counted about samples for pre-training, and whether two counts are of one kind."""

import numpy as np
from scipy import stats

from model_zoo.tasks.pretraining.files import Samples

#: options of the study that the fixtures hold
STUDY = {'max_seq_length': 64, 'max_predictions_per_seq': 20, 'dupe_factor': 300}


def google_samples(instances, vocab):
    """Samples of Google's or GluonNLP's TrainingInstance objects."""
    longest = max(len(each.tokens) for each in instances)
    most = max(len(each.masked_lm_positions) for each in instances)
    samples = Samples(*map(np.zeros_like, Samples.empty(len(instances), longest, most)))
    for row, each in enumerate(instances):
        length, masks = len(each.tokens), len(each.masked_lm_positions)
        samples.input_ids[row, :length] = vocab[each.tokens]
        samples.segment_ids[row, :length] = each.segment_ids
        samples.masked_lm_positions[row, :masks] = each.masked_lm_positions
        samples.masked_lm_ids[row, :masks] = vocab[each.masked_lm_labels]
        samples.masked_lm_weights[row, :masks] = 1
        samples.next_sentence_labels[row] = each.is_random_next
        samples.valid_lengths[row] = length
    return samples


def unmasked(samples):
    """The ids before anything was masked."""
    ids = samples.input_ids.copy()
    rows, masks = np.nonzero(samples.masked_lm_weights)
    ids[rows, samples.masked_lm_positions[rows, masks]] = samples.masked_lm_ids[rows, masks]
    return ids


def statistics(samples, vocab, options):
    """Histograms, by name, as lists of counts."""
    weights = samples.masked_lm_weights > 0
    rows, masks = np.nonzero(weights)
    places, labels = samples.masked_lm_positions[rows, masks], samples.masked_lm_ids[rows, masks]
    # of neighbours only the first one: a word's masks aren't independent of each other
    begins = np.diff(rows * options.max_seq_length + places, prepend=-2) != 1
    shown = samples.input_ids[rows, places]
    masked = shown == vocab[vocab.mask_token]
    lengths, limit = samples.valid_lengths, options.max_seq_length
    second = samples.segment_ids.sum(axis=1)
    counts, of_random = weights.sum(axis=1), second[samples.next_sentence_labels == 1]
    ids = unmasked(samples)
    first_tokens, last_tokens = ids[:, 1], ids[np.arange(len(ids)), lengths - 2]
    tokens = len(vocab)

    def count(values, size):
        return np.bincount(values, minlength=size).tolist()

    return {
        'samples': [samples.count],
        'random_next': count(samples.next_sentence_labels, 2),
        'lengths': count(lengths // 4, limit // 4 + 1),
        'lengths_of_second': count(second // 4, limit // 4 + 1),
        'second_of_random_next': count(of_random // 4, limit // 4 + 1),
        'masks': count(counts, options.max_predictions_per_seq + 1),
        'replaced': count(np.where(masked, 0, np.where(shown == labels, 1, 2)), 3),
        'places': count(places[begins] // 4, limit // 4),
        'begins': count(begins.astype(int), 2),
        'random_tokens': count(shown[~masked & (shown != labels)] * 16 // tokens, 16),
        # where the segments were cut off
        'first_tokens': count(first_tokens, tokens),
        'last_tokens': count(last_tokens, tokens),
        'masked_tokens': count(labels[begins], tokens),
    }


def probability(ours, theirs):
    """Return the p-value of the chi-square test that two histograms count the same."""
    table = np.array([ours, theirs], np.float64)
    rare = table.sum(axis=0) < 20  # of which the test can't tell anything
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table)[1] if table.shape[1] > 1 else 1.0
