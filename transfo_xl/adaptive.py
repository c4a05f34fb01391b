"""Embedding and softmax for large vocabularies, cut into clusters of falling frequency."""

import math

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock

from model_zoo.layers.precision import MixedPrecision


def initializers(config):
    """Return the configuration's initializers of weights and of projections."""
    weights = mx.init.Normal(config.init_std)
    if config.init == 'uniform':
        weights = mx.init.Uniform(config.init_range)
    return weights, mx.init.Normal(config.proj_init_std)


class AdaptiveEmbedding(MixedPrecision, HybridBlock):
    """Word embedding with fewer units for rarer words (Baevski and Auli 2019, section 3).

    Inputs
    ------
    words : any shape
        Ids.

    Outputs
    -------
    (..., units)
        Multiplied by the square root of `units`.
    """

    # Each cluster of words has a table and a projection to the common number of units. Every word
    # is looked up in every table, and the results of the wrong tables are multiplied by zero. The
    # projections cost little, and the shapes don't depend on the words.

    def __init__(self, config, prefix=None):
        super().__init__(prefix=prefix)
        self._sizes, self._units, units = config.sizes, config.d_model, config.embedding_units
        weights, projections = initializers(config)
        count = 1 if config.div_val == 1 else len(units)
        with self.name_scope():
            shapes = enumerate(zip(self._sizes, units))
            self.tables = [self._add(f'table{i}', shape, weights) for i, shape in shapes]
            count = count if config.has_projections else 0
            shapes = enumerate((config.d_model, width) for width in units[:count])
            self.projections = [self._add(f'proj{i}', shape, projections) for i, shape in shapes]

    def _add(self, name, shape, initializer):
        parameter = self.params.get(name, shape=shape, init=initializer)
        setattr(self, name, parameter)
        return parameter

    def hybrid_forward(self, F, words, **params):
        words = F.cast(words, 'float32')  # exact up to 16 million
        vectors = [self._look_up(F, words, i, params) for i in range(len(self._sizes))]
        if len(self.projections) > 1:
            vectors = [self._project(F, part, params[f'proj{i}']) for i, part in enumerate(vectors)]
        x = vectors[0] if len(vectors) == 1 else F.add_n(*vectors)
        if len(self.projections) == 1:
            x = self._project(F, x, params['proj0'])
        return x * math.sqrt(self._units)

    def _look_up(self, F, words, cluster, params):
        """Return the vectors of words in a cluster's table, zero for other clusters' words."""
        words = words - sum(self._sizes[:cluster])
        vectors = F.take(params[f'table{cluster}'], words, mode='clip')
        if len(self._sizes) == 1:
            return vectors
        inside = (words >= 0) * (words < self._sizes[cluster])
        if self.precision == 'float16':
            inside = F.cast(inside, 'float16')
        return F.broadcast_mul(vectors, F.expand_dims(inside, -1))

    def _project(self, F, x, weight):
        return self.fully_connected(F, x, weight, num_hidden=self._units, flatten=False)


class AdaptiveSoftmax(MixedPrecision, HybridBlock):
    """Softmax over clusters of words (Grave et al. 2017, "Efficient softmax approximation").

    Inputs
    ------
    x : (positions, units)
    targets : list of arrays, optional
        See `loss`, which makes them.

    Outputs
    -------
    Without targets log-probabilities (positions, words); with them the loss (positions,).
    """

    # The head scores the words of the first cluster, and each further cluster as a whole. A
    # further cluster has its own softmax over its words. With targets (see `loss`), a further
    # cluster is computed only for the positions with a target in it, and no array is as large as
    # the vocabulary.

    #: numbers of rows are rounded up to multiples of this part of all rows
    steps = 16

    def __init__(self, config, embedding, prefix=None):
        super().__init__(prefix=prefix)
        self._sizes, self._has_projections = config.sizes, config.has_projections
        units, further = config.embedding_units, len(config.sizes) - 1
        weights, projections = initializers(config)
        with self.name_scope():
            for i, shape in enumerate(zip(self._sizes, units)):
                shared = embedding.tables[i] if config.tie_weight else None
                self._add(f'table{i}', shape, weights, shared)
                self._add(f'bias{i}', shape[:1], mx.init.Zero())
                if self._has_projections:
                    # with equal units the embedding has one for all clusters
                    first = 0 if config.div_val == 1 else i
                    shared = embedding.projections[first] if config.tie_projs[i] else None
                    self._add(f'proj{i}', (config.d_model, units[i]), projections, shared)
            if further:
                self._add('cluster_weight', (further, units[0]), weights)
                self._add('cluster_bias', (further,), mx.init.Zero())

    def _add(self, name, shape, initializer, shared=None):
        if shared is None:
            shared = self.params.get(name, shape=shape, init=initializer)
        else:
            self.params.update({shared.name: shared})  # for the graph of this block alone
        setattr(self, name, shared)

    def hybrid_forward(self, F, x, targets=None, **params):
        head = self._within(F, x, 0, params)
        if targets is None:
            scores = self._all_words(F, x, head, params)
            return F.cast(scores, 'float16') if self.precision == 'float16' else scores
        target, counted, *tails = targets
        log_probability = F.pick(head, target, axis=-1)
        if tails:
            log_probability = log_probability + self._further(F, x, params, *tails)
        return -log_probability * counted

    def _further(self, F, x, params, positions, *tails):
        """Return log-probabilities within the positions' further clusters, 0 without one."""
        parts = [F.zeros_like(F.slice_axis(positions, axis=0, begin=0, end=1))]
        for i, (rows, column) in enumerate(zip(tails[::2], tails[1::2]), 1):
            scores = self._within(F, F.take(x, rows), i, params)
            parts.append(F.pick(scores, column, axis=-1))
        return F.take(F.concat(*parts, dim=0), positions)

    def _within(self, F, x, cluster, params):
        """Return the log-probabilities of a cluster's words, in float32.

        Behind the first cluster's words are the further clusters.
        """
        if self._has_projections:
            x = self.product(F, F.dot, x, params[f'proj{cluster}'])
        parts = [(f'table{cluster}', f'bias{cluster}', self._sizes[cluster])]
        if cluster == 0 and len(self._sizes) > 1:
            parts.append(('cluster_weight', 'cluster_bias', len(self._sizes) - 1))
        pairs = [(size, params[weight], params[bias]) for weight, bias, size in parts]
        scores = [self.fully_connected(F, x, *pair, num_hidden=size) for size, *pair in pairs]
        scores = F.concat(*scores, dim=1) if len(scores) > 1 else scores[0]
        if self.precision == 'float16':
            scores = F.cast(scores, 'float32')
        return F.log_softmax(scores, axis=-1)

    def _all_words(self, F, x, head, params):
        parts = [F.slice_axis(head, axis=1, begin=0, end=self._sizes[0])]
        for i in range(1, len(self._sizes)):
            column = self._sizes[0] + i - 1
            cluster = F.slice_axis(head, axis=1, begin=column, end=column + 1)
            parts.append(F.broadcast_add(self._within(F, x, i, params), cluster))
        return F.concat(*parts, dim=1) if len(parts) > 1 else parts[0]

    def loss(self, x, labels):
        """Negative log-likelihood of each label."""
        # Positions are assigned to clusters here, before the graph, so that it can be static.
        # Their numbers are rounded up, so that it is rarely planned again. The targets are the
        # label's column in the head; whether it counts; and if there are further clusters, its
        # index in the list of 0 and all their log-probabilities; and for each cluster the numbers
        # of the rows to compute, and their labels' columns in it.
        ids = labels.asnumpy().astype('int64')
        target, positions = np.maximum(ids, 0), np.zeros_like(ids)
        step = max(1, len(ids) // self.steps)
        tails, start, used = [], self._sizes[0], 1
        for i, size in enumerate(self._sizes[1:]):
            (rows,) = np.nonzero((ids >= start) & (ids < start + size))
            padded = np.zeros((2, max(1, -(-len(rows) // step)) * step))
            padded[0, : len(rows)] = rows
            padded[1, : len(rows)] = ids[rows] - start
            target[rows] = self._sizes[0] + i
            positions[rows] = used + np.arange(len(rows))
            tails += list(padded)
            used += padded.shape[1]
            start += size
        targets = [target, ids >= 0, *([positions, *tails] if tails else [])]
        return self(x, [mx.nd.array(each, ctx=labels.context, dtype='float32') for each in targets])
