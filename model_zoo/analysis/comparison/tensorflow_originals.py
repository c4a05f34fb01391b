"""The originals' programs for TensorFlow 1, run on a comparison's inputs."""

import importlib.util
import os
import sys
import types

import numpy as np

from ...errors import InputError, MissingExtraError
from ...pretrained import files_in_folder
from ...util.files import read_json

__all__ = ['load_original', 'run_tensorflow']


def load_original(path):
    """Import a module written for TensorFlow 1, under TensorFlow 2's compatibility mode.

    ``tf.contrib`` is gone there; the module gets a small one with what Google's and OpenAI's models
    use, the layer normalization and ``HParams``.

    Parameters
    ----------
    path : str
        Such as ``modeling.py`` of google-research/bert. It can import the modules beside it.

    Returns
    -------
    module
    """
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()

    def layer_norm(inputs, begin_norm_axis=1, begin_params_axis=-1, scope=None):
        if begin_norm_axis not in (-1, inputs.shape.ndims - 1) or begin_params_axis != -1:
            raise NotImplementedError('layer normalization over other axes than the last one')
        with tf.variable_scope(scope, 'LayerNorm'):
            size = inputs.shape[-1]
            beta = tf.get_variable('beta', [size], initializer=tf.zeros_initializer())
            gamma = tf.get_variable('gamma', [size], initializer=tf.ones_initializer())
            mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
            return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)

    training = types.ModuleType('tensorflow.contrib.training')
    training.HParams = types.SimpleNamespace
    contrib = types.ModuleType('tensorflow.contrib')
    contrib.training = training
    contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
    tf.contrib = contrib
    replaced = {
        'tensorflow': tf,
        'tensorflow.contrib': contrib,
        'tensorflow.contrib.training': training,
    }
    kept = {name: sys.modules.get(name) for name in replaced}
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.update(replaced)
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
        for name, value in kept.items():
            if value is None:
                sys.modules.pop(name)
            else:
                sys.modules[name] = value
    return module


class _Session:
    """A graph of the original program, and the checkpoint's variables in it."""

    def __init__(self, tf, checkpoint):
        self.tf = tf
        weights = files_in_folder(checkpoint, 'tensorflow').weights
        if weights is None:
            raise InputError(f'no TensorFlow checkpoint in {checkpoint!r}')
        self._prefix = weights[: -len('.index')]

    def run(self, outputs, set_values=None):
        """Values of `outputs`; variables that the checkpoint lacks get `set_values` by name."""
        tf = self.tf
        stored = {name for name, _ in tf.train.list_variables(self._prefix)}
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        lacking = sorted(set(variables) - stored - set(set_values or ()))
        if lacking:
            raise InputError(f'{self._prefix!r} lacks {", ".join(lacking[:20])}')
        with tf.Session() as session:
            found = {name: variables[name] for name in variables if name in stored}
            tf.train.Saver(found).restore(session, self._prefix)
            for name, value in (set_values or {}).items():
                if name in variables and name not in stored:
                    session.run(variables[name].initializer)
                    variables[name].load(value, session)
            return session.run(outputs)


def run_tensorflow(family, checkpoint, code, config, inputs):
    """The outputs of the original program for TensorFlow.

    Parameters
    ----------
    family, checkpoint, code, inputs
        See `run_theirs`.
    config : Config
        Of our block.

    Returns
    -------
    dict of str to numpy.ndarray
    """
    try:
        import tensorflow  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    run = {'bert': _run_bert, 'gpt2': _run_gpt2, 'transfo_xl': _run_transfo_xl}
    return run[family](checkpoint, code, config, inputs)


def _original_in(code, *names):
    path = os.path.join(code, *names)
    if not os.path.isfile(path):
        raise InputError(f'`code` {code!r} is not a clone of the original: it lacks {path!r}')
    return load_original(path)


def _run_bert(checkpoint, code, config, inputs):
    training = _original_in(code, 'run_pretraining.py')
    tf, modeling = training.tf, training.modeling
    for name in list(tf.flags.FLAGS):  # both programs define the same
        delattr(tf.flags.FLAGS, name)
    squad = _original_in(code, 'run_squad.py')
    session = _Session(tf, checkpoint)
    # the activation is the program's own, whatever ours is told
    _, fields = config.to_format('tensorflow', '')
    fields['hidden_act'] = read_json(files_in_folder(checkpoint).config, shape=dict).get(
        'hidden_act', 'gelu'
    )
    settings = modeling.BertConfig.from_dict(fields)
    batch, length = inputs.words.shape
    with tf.Graph().as_default():
        words, types, mask = (
            tf.constant(each.astype('int32'))
            for each in (inputs.words, inputs.token_types, inputs.mask)
        )
        model = modeling.BertModel(settings, False, words, mask, types)
        places = tf.tile(tf.range(length)[None], [batch, 1])
        _, _, masked = training.get_masked_lm_output(
            settings, model.get_sequence_output(), model.get_embedding_table(), places, words,
            tf.ones_like(words, tf.float32),
        )  # fmt: skip
        _, _, following = training.get_next_sentence_output(
            settings, model.get_pooled_output(), tf.zeros(batch, tf.int32)
        )
        outputs = {f'layer {i}': x for i, x in enumerate(model.get_all_encoder_layers(), 1)}
        outputs['pooled vector'] = model.get_pooled_output()
        stored = {name for name, _ in tf.train.list_variables(session._prefix)}
        if 'cls/predictions/output_bias' in stored:
            outputs['masked words'] = tf.reshape(masked, (batch, length, -1))
            outputs['next sentence'] = following
        heads = {variable.op.name: np.zeros(variable.shape.as_list(), 'float32')
                 for variable in tf.global_variables()
                 if variable.op.name.startswith('cls/')}  # fmt: skip
        result = session.run(outputs, heads)
    shortest = int(inputs.valid_length.min())
    with tf.Graph().as_default():
        words, types = (
            tf.constant(each[:, :shortest]) for each in (inputs.words, inputs.token_types)
        )
        start, end = squad.create_model(settings, False, words, tf.ones_like(words), types, False)
        losses = [
            tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=scores, labels=places)
            )
            for scores, places in zip((start, end), inputs.answers)
        ]
        outputs = {'answer start': start, 'answer end': end,
                   'answer loss': tf.reshape(sum(losses) / 2, [1])}  # fmt: skip
        head = {'cls/squad/output_weights': inputs.span_weight,
                'cls/squad/output_bias': np.zeros(2, 'float32')}  # fmt: skip
        return {**result, **session.run(outputs, head)}


def _run_gpt2(checkpoint, code, config, inputs):
    original = _original_in(code, 'src', 'model.py')
    tf = original.tf
    session = _Session(tf, checkpoint)
    layers, block, norm = [], original.block, original.norm

    def keep_layer(*arguments, **options):
        state, present = block(*arguments, **options)
        layers.append(state)
        return state, present

    def keep_last(x, scope, **options):
        result = norm(x, scope, **options)
        if scope == 'ln_f':
            layers[-1] = result
        return result

    original.block, original.norm = keep_layer, keep_last
    _, fields = config.to_format('tensorflow', '')
    with tf.Graph().as_default():
        results = original.model(types.SimpleNamespace(**fields), tf.constant(inputs.words))
        outputs = {f'layer {i}': layer for i, layer in enumerate(layers, 1)}
        return session.run({**outputs, 'next word': tf.nn.log_softmax(results['logits'])})


def _run_transfo_xl(checkpoint, code, config, inputs):
    original = _original_in(code, 'tf', 'model.py')
    tf = original.tf
    session = _Session(tf, checkpoint)
    names = ('n_layer', 'd_model', 'd_embed', 'n_head', 'd_head', 'd_inner', 'cutoffs', 'div_val',
             'tie_projs', 'same_length', 'clamp_len', 'untie_r')  # fmt: skip
    settings = {name: getattr(config, name) for name in names}
    batch, length = inputs.words.shape
    weights = tf.initializers.zeros()
    with tf.Graph().as_default():
        mems = [tf.zeros((length, batch, config.d_model)) for _ in range(config.n_layer)]
        loss, mems = original.transformer(
            dec_inp=tf.constant(inputs.words[:, :-1].T), mems=mems, mem_len=length,
            target=tf.constant(inputs.words[:, 1:].T), n_token=config.vocab_size, dropout=0.0,
            dropatt=0.0, initializer=weights, is_training=False, use_tpu=False, **settings,
        )  # fmt: skip
        states = [tf.transpose(memory, (1, 0, 2))[:, 1:] for memory in mems]
        outputs = {f'input of layer {i}': state for i, state in enumerate(states, 1)}
        return session.run({**outputs, 'next word, mean loss': tf.reshape(loss, [1])})
