"""The software that checkpoints come from, run on a comparison's inputs."""

import contextlib
import importlib.util
import os
import sys
import types

import numpy as np

from ..checkpoint import read_tensors
from ..errors import InputError, MissingExtraError
from ..pretrained import files_in_folder
from ..util.reading import read_json
from .comparison import is_variant

__all__ = [
    'SOFTWARE',
    'check_software',
    'load_original',
    'run_pytorch',
    'run_tensorflow',
    'run_theirs',
    'run_variant',
]

#: software -> the families whose models it has
SOFTWARE = {
    'tensorflow': ('bert', 'gpt2', 'transfo_xl'),
    'transformers': ('bert', 'roberta', 'xlmr', 'distilbert', 'electra', 'gpt', 'gpt2'),
    'pytorch-pretrained-bert': ('bert', 'gpt', 'gpt2'),
}


def check_software(software, family, code=None):
    """Raise InputError if `run_theirs` can't run with these arguments."""
    if family not in SOFTWARE[software]:
        able = [name for name, families in SOFTWARE.items() if family in families]
        raise InputError(f'{software} does not run {family} here: {", ".join(able)} does')
    if software == 'tensorflow' and not code:
        raise InputError("`software` tensorflow needs `code`, the folder of the original's program")


def run_theirs(software, family, checkpoint, block, inputs, code=None):
    """The outputs of the software that a checkpoint comes from."""
    check_software(software, family, code)
    if software == 'tensorflow':
        return run_tensorflow(family, checkpoint, code, block.config, inputs)
    if is_variant(block):
        return run_variant(checkpoint, block, inputs)
    has_span = hasattr(block, 'span_classifier')
    return run_pytorch(software, family, checkpoint, block.config, inputs, has_span)


def run_pytorch(software, family, checkpoint, config, inputs, has_span):
    """The outputs of transformers or pytorch-pretrained-bert."""
    try:
        import torch

        if software == 'transformers':
            import transformers as library
        else:
            import pytorch_pretrained_bert as library
    except ImportError as error:
        raise MissingExtraError(f'{software} is not installed ({error})') from error
    class_name = {
        'bert': 'BertForQuestionAnswering' if has_span else 'BertForPreTraining',
        'gpt': 'OpenAIGPTLMHeadModel',
        'gpt2': 'GPT2LMHeadModel',
    }[family]
    model = _load(software, family, checkpoint, library, class_name, config)
    words, types, keep = (
        torch.tensor(array).long() for array in (inputs.words, inputs.token_types, inputs.mask)
    )
    layers = {}
    stack = model.bert.encoder.layer if family == 'bert' else model.transformer.h

    def keeper(number):
        def keep_output(module, arguments, output):
            output = output[0] if isinstance(output, (tuple, list)) else output
            layers[f'layer {number}'] = output.numpy()

        return keep_output

    for number, layer in enumerate(stack, 1):
        if family == 'gpt2' and number == len(stack):
            layer = model.transformer.ln_f  # our last layer's output is normalized
        layer.register_forward_hook(keeper(number))
    with torch.no_grad():
        if family != 'bert':
            scores = _first_of(model(words))
            return {**layers, 'next word': torch.log_softmax(scores, -1).numpy()}
        _, pooled = _list_of(model.bert(words, attention_mask=keep, token_type_ids=types))[:2]
        result = {**layers, 'pooled vector': pooled.numpy()}
        span = model
        if not has_span:
            outputs = _list_of(model(words, attention_mask=keep, token_type_ids=types))
            for name, scores in zip(('masked words', 'next sentence'), outputs):
                result[name] = torch.log_softmax(scores, -1).numpy()
            span_config = model.bert.config
            span_config.num_labels = 2  # start and end; a classifier's folder has its own number
            span = library.BertForQuestionAnswering(span_config).eval()
            span.bert = model.bert
            span.qa_outputs.weight.copy_(torch.tensor(inputs.span_weight))
            span.qa_outputs.bias.zero_()
        shortest = int(inputs.valid_length.min())
        text = {'token_type_ids': types[:, :shortest]}
        start, end = _list_of(span(words[:, :shortest], **text))[:2]
        answers = dict(zip(('start_positions', 'end_positions'), torch.tensor(inputs.answers)))
        answers = {key: value.long() for key, value in answers.items()}
        loss = _first_of(span(words[:, :shortest], **text, **answers))
    return {**result, 'answer start': start.numpy(), 'answer end': end.numpy(),
            'answer loss': loss.reshape(1).numpy()}  # fmt: skip


def run_variant(checkpoint, block, inputs):
    """The outputs of transformers for a model like BERT; see `run_theirs`."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(f'transformers is not installed ({error})') from error
    name = block.huggingface_name or type(block).__name__
    _, fields = block.config.to_format('huggingface', name)
    model_class = getattr(transformers, name)
    config = model_class.config_class.from_dict(fields)
    model = model_class.from_pretrained(checkpoint, config=config).eval()
    arrays = {'input_ids': inputs.words, 'attention_mask': inputs.mask}
    if 'token_types' not in block.unused_inputs:
        arrays['token_type_ids'] = inputs.token_types
    with torch.no_grad():
        tensors = {key: torch.tensor(array).long() for key, array in arrays.items()}
        outputs = dict(model(**tensors, output_hidden_states=True))
    layers = outputs.pop('hidden_states')[1:]
    outputs.pop('last_hidden_state', None)
    named = {f'layer {i}': layer for i, layer in enumerate(layers, 1)}
    named.update((f'output {i}', output) for i, output in enumerate(outputs.values(), 1))
    return {key: output.numpy() for key, output in named.items()}


def _list_of(outputs):
    return list(outputs.values()) if isinstance(outputs, dict) else list(outputs)


def _first_of(outputs):
    is_tensor = not isinstance(outputs, (dict, tuple, list))
    return outputs if is_tensor else _list_of(outputs)[0]


def _load(software, family, checkpoint, library, class_name, config):
    """A model of the library's with the checkpoint, as the library reads it."""
    import torch

    model_class = getattr(library, class_name)
    weights = files_in_folder(checkpoint).weights
    config_class = getattr(library, type(config).__name__)
    _, fields = config.to_format('huggingface', class_name)
    if software == 'transformers':
        their_config = config_class.from_dict(fields)
    else:
        their_config = config_class(fields['vocab_size'])
        known = {key: value for key, value in fields.items() if hasattr(their_config, key)}
        their_config.__dict__.update(known)
    is_torch = weights.endswith(('.safetensors', '.bin', '.index.json'))
    if is_torch and software == 'transformers':
        return model_class.from_pretrained(checkpoint, config=their_config).eval()
    if is_torch:
        # 2019's library doesn't read today's formats by itself
        state = {key: torch.tensor(value) for key, value in read_tensors(weights)[0].items()}
        model = part = model_class(their_config)
        if not any(key in model.state_dict() for key in state):  # the file of a backbone
            part = model.bert if family == 'bert' else model.transformer
        lacking, _ = part.load_state_dict(state, strict=False)
        parameters = {key for key, _ in part.named_parameters()}  # not the masks that it stores
        heads = ('lm_head', 'cls', 'qa_outputs', 'bert.pooler', 'pooler')
        lacking = [key for key in lacking if key in parameters and not key.startswith(heads)]
        if lacking:
            raise InputError(f'{weights!r} lacks {", ".join(lacking[:20])}')
        return model.eval()
    model = model_class(their_config)
    module = sys.modules[model_class.__module__]
    if weights.endswith('params_shapes.json') and software != 'transformers':
        load, base, path = module.load_tf_weights_in_openai_gpt, model, checkpoint
    elif weights.endswith('.index') and software != 'transformers':  # gone in version 5
        load = getattr(module, f'load_tf_weights_in_{family}')
        base, path = model, weights[: -len('.index')]
    else:
        raise InputError(f'{weights!r} is not a file that {software} reads')
    if family != 'bert':
        base = model.transformer
    # their converters write on standard output, and end at names that the model lacks
    with contextlib.redirect_stdout(sys.stderr):
        try:
            load(base, path)
        except (AttributeError, AssertionError, OSError) as error:
            raise InputError(f'{software} cannot read {path!r}: {error}') from error
    return model.eval()


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
            variables_stored = {name: variables[name] for name in variables if name in stored}
            tf.train.Saver(variables_stored).restore(session, self._prefix)
            for name, value in (set_values or {}).items():
                if name in variables and name not in stored:
                    session.run(variables[name].initializer)
                    variables[name].load(value, session)
            return session.run(outputs)


def run_tensorflow(family, checkpoint, code, config, inputs):
    """The outputs of the original program for TensorFlow."""
    MissingExtraError.check('tensorflow', 'tensorflow')
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
    for name in list(tf.flags.FLAGS):  # both programs define the same flags
        delattr(tf.flags.FLAGS, name)
    squad = _original_in(code, 'run_squad.py')
    session = _Session(tf, checkpoint)
    # the program uses its file's activation, whatever ours uses
    _, fields = config.to_format('tensorflow', '')
    fields['hidden_act'] = read_json(files_in_folder(checkpoint).config, shape=dict).get(
        'hidden_act', 'gelu'
    )
    settings = modeling.BertConfig.from_dict(fields)
    batch, length = inputs.words.shape
    with tf.Graph().as_default():
        words, types, mask = (
            tf.constant(array.astype('int32'))
            for array in (inputs.words, inputs.token_types, inputs.mask)
        )
        model = modeling.BertModel(settings, False, words, mask, types)
        positions = tf.tile(tf.range(length)[None], [batch, 1])
        _, _, masked = training.get_masked_lm_output(
            settings, model.get_sequence_output(), model.get_embedding_table(), positions, words,
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
            tf.constant(array[:, :shortest]) for array in (inputs.words, inputs.token_types)
        )
        start, end = squad.create_model(settings, False, words, tf.ones_like(words), types, False)
        losses = [
            tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=scores, labels=positions)
            )
            for scores, positions in zip((start, end), inputs.answers)
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
