"""Programs written for TensorFlow 1 as modules, for the scripts that write fixtures."""

import importlib.util
import os
import sys
import types


def load_original(path):
    """Import a module written for TensorFlow 1, under TensorFlow 2's compatibility mode.

    ``tf.contrib`` is gone there; the module gets a small one with what Google's and OpenAI's models
    use, the layer normalization and ``HParams``.
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
