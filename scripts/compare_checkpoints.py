"""Compare a checkpoint's outputs in its own software with our block's, layer by layer.

    python compare_checkpoints.py --family bert --software tensorflow --code google-research-bert \
        uncased_L-12_H-768_A-12 --input_file sentences.txt
    python compare_checkpoints.py --family gpt2 --software transformers gpt2 --converted gpt2-zoo

Prints, for each layer and each prediction, the largest difference and the differences' standard
deviation, and of predictions how many are the same; with ``--output_dir``, writes them to
comparison.json and comparison.png. The original program reads the checkpoint; our block reads the
same, or the directory that ``--converted`` names, such as convert_checkpoint.py writes it.

Of BERT these are compared: all layers, the pooled vector, the predictions of masked words and of
next sentences, and start, end and loss of answers (SQuAD), with random weights for the last layer
where the checkpoint has none. Of GPT, GPT-2 and Transformer-XL: all layers, and the next words.

``--software tensorflow`` needs TensorFlow, and the original program in the folder ``--code``: a
clone of google-research/bert, of openai/gpt-2 or of kimiyoung/transformer-xl. (Since February 2019,
google-research/bert computes gelu by an approximation, for whatever checkpoint: ``--hidden_act
gelu_new`` lets our block do so, too.)
"""

import contextlib
import importlib
import importlib.util
import json
import logging
import os
import sys
import types

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx
import numpy as np

from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.families import FAMILIES
from model_zoo.opening import open_block, open_tokenizer
from model_zoo.pretrained import files_in_folder
from model_zoo.util.figures import new_figure, save_figure
from model_zoo.util.files import make_writable_dir, write_json

log = logging.getLogger('compare_checkpoints')

#: software -> families whose models it has
SOFTWARE = {
    'tensorflow': ('bert', 'gpt2', 'transfo_xl'),
    'transformers': ('bert', 'gpt', 'gpt2'),
    'pytorch-pretrained-bert': ('bert', 'gpt', 'gpt2'),
}
MASKED = 0.15  # of the words, as in BERT's training


logging.getLogger('pytorch_pretrained_bert').setLevel(logging.WARNING)
logging.getLogger('tensorflow').setLevel(logging.ERROR)


def parse(argv):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('checkpoint', help='directory of the checkpoint')
    parser.add_argument('--converted', help='directory that our block reads; by default the same')
    parser.add_argument('--family', choices=FAMILIES, required=True)
    parser.add_argument('--software', choices=SOFTWARE, required=True)
    parser.add_argument('--code', help="folder of the original's program for TensorFlow")
    parser.add_argument('--input_file', help='lines of text, for BERT also "first ||| second"; '
                        'by default random tokens')  # fmt: skip
    parser.add_argument('--num_examples', type=int, default=8)
    parser.add_argument('--max_seq_length', type=int, default=128)
    parser.add_argument('--hidden_act', help="BERT's activation in our block, if the software has "
                        'another than the configuration says')  # fmt: skip
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--output_dir', help='where comparison.json and .png go')
    args = parser.parse_args(argv)
    if args.family not in SOFTWARE[args.software]:
        able = [name for name, families in SOFTWARE.items() if args.family in families]
        raise InputError(f'{args.software} does not run {args.family} here: {", ".join(able)} does')
    if args.software == 'tensorflow' and not args.code:
        raise InputError("--software tensorflow needs --code, the folder of the original's program")
    for name in ('num_examples', 'max_seq_length'):
        if getattr(args, name) < 1:
            raise InputError(f'--{name} must be at least 1: {getattr(args, name)}')
    for path in filter(None, (args.checkpoint, args.converted, args.code)):
        if not os.path.isdir(path):
            raise InputError(f'no such directory: {path!r}')
    return args


# -- inputs ---------------------------------------------------------------------------------------


def make_inputs(args, block):
    """Ids and the like by names, NumPy arrays: the same for both."""
    random = np.random.RandomState(args.seed)
    config = block.config
    limit = getattr(config, 'max_position_embeddings', getattr(config, 'n_positions', 1 << 30))
    length = min(args.max_seq_length, limit)
    if args.input_file:
        inputs = read_inputs(args, block, length)
    else:
        shape = (args.num_examples, length)
        valid = random.randint(min(4, length), length + 1, args.num_examples)
        valid[0] = length
        inputs = {
            'words': random.randint(0, config.vocab_size, shape),
            'types': random.randint(0, getattr(config, 'type_vocab_size', 1), shape),
            'valid': valid,
        }
    inputs['keep'] = np.arange(inputs['words'].shape[1]) < inputs['valid'][:, None]
    # answers: the originals let padding take part in the loss, so there is none here
    shortest = inputs['valid'].min()
    inputs['answers'] = np.sort(random.randint(0, shortest, (2, len(inputs['words']))), axis=0)
    inputs['span'] = 0.02 * random.randn(2, getattr(config, 'hidden_size', 1))
    return {
        name: value.astype(
            'bool' if name == 'keep' else 'float32' if name == 'span' else 'int32'
        )
        for name, value in inputs.items()
    }


def read_inputs(args, block, length):
    """Ids of the first lines of the file; of BERT some words are masked."""
    tokenizer = open_tokenizer(args.checkpoint, family=args.family)
    try:
        with open(args.input_file, encoding='utf-8') as file:
            lines = [line.strip() for line in file if line.strip()][: args.num_examples]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {args.input_file!r}: {error}') from error
    if not lines:
        raise InputError(f'{args.input_file!r} holds no text')
    if args.family == 'bert':
        pairs = [(line.split(' ||| ') + [''])[:2] for line in lines]
        firsts, seconds = zip(*pairs)
        batch = tokenizer.encode_batch(list(firsts), list(seconds), max_length=length)
        words = batch.input_ids
        random = np.random.RandomState(args.seed)
        special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
        mask = (random.rand(*words.shape) < MASKED) & ~np.isin(words, special)
        words = np.where(mask, tokenizer.mask_token_id, words)
        return {'words': words, 'types': batch.token_types, 'valid': batch.valid_length}
    rows = [np.array(tokenizer.encode(line))[:length] for line in lines]
    rows = [row for row in rows if len(row)]
    valid = np.array([len(row) for row in rows])
    words = np.zeros((len(rows), valid.max()), 'int32')
    for row, ids in zip(words, rows):
        row[: len(ids)] = ids
    return {'words': words, 'types': np.zeros_like(words), 'valid': valid}


# -- our block ------------------------------------------------------------------------------------


def open_ours(args):
    """Our block with all that the checkpoint has, and the folder that it is read from."""
    options = {'hidden_act': args.hidden_act} if args.hidden_act else {}
    folder = args.converted or args.checkpoint
    block, _ = open_block(folder, family=args.family, exact=True, **options)
    return block, importlib.import_module(args.family)


def run_ours(block, family, inputs):
    """Our outputs by name."""
    words, types, valid = (
        mx.nd.array(inputs[name], dtype='int32') for name in ('words', 'types', 'valid')
    )
    if block.config.model_type == 'bert':
        return run_our_bert(block, family, inputs, words, types, valid)
    if block.config.model_type == 'transfo-xl':
        # all layers' inputs are in the memory, if it is as long as the text
        block.reset_length(words.shape[1], 0, words.shape[1])
        losses, mems = block(words[:, :-1], labels=words[:, 1:])
        states = [memory.transpose((1, 0, 2))[:, 1:].asnumpy() for memory in mems[:-1]]
        outputs = {f'input of layer {i}': state for i, state in enumerate(states, 1)}
        return {**outputs, 'next word, mean loss': losses.mean().asnumpy()}
    base = block.base
    base.output_all_encodings = True
    base.hybridize(False)
    outputs = base(words, valid_length=valid)
    states = outputs[0] if base.has_past else outputs
    named = {f'layer {i}': state.asnumpy() for i, state in enumerate(states[1:], 1)}
    scores = mx.nd.dot(states[-1], base.word_embed.weight.data(), transpose_b=True)
    return {**named, 'next word': mx.nd.log_softmax(scores).asnumpy()}


def run_our_bert(block, family, inputs, words, types, valid):
    base = block.base
    base.output_all_encodings = True
    outputs = base(words, types, valid)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    parts = ['layers'] + ['pooled vector'] * base.has_pooler
    parts += ['next sentence'] * base.has_classifier + ['masked words'] * base.has_decoder
    # a bare model of one output isn't wrapped in a list of outputs
    named = dict(zip(parts, outputs if len(parts) > 1 else [outputs]))
    result = {f'layer {i}': state.asnumpy() for i, state in enumerate(named['layers'], 1)}
    if base.has_pooler:
        result['pooled vector'] = named['pooled vector'].asnumpy()
    for name in ('next sentence', 'masked words'):
        if name in named:
            result[name] = mx.nd.log_softmax(named[name]).asnumpy()
    if not hasattr(block, 'span_classifier'):
        span = family.BertForQuestionAnswering(base)
        span.span_classifier.initialize()
        span.span_classifier.weight.set_data(mx.nd.array(inputs['span']))
    else:
        span = block
    base.output_all_encodings = False
    shortest = int(inputs['valid'].min())
    text = (words[:, :shortest], types[:, :shortest], None)
    start, end = span(*text)
    answers = [mx.nd.array(places, dtype='int32') for places in inputs['answers']]
    loss = span(*text, *answers)
    return {**result, 'answer start': start.asnumpy(), 'answer end': end.asnumpy(),
            'answer loss': loss.asnumpy()}  # fmt: skip


# -- PyTorch --------------------------------------------------------------------------------------


def run_torch(args, inputs, config, has_span):
    """The outputs of transformers or pytorch-pretrained-bert by name."""
    args.software.replace('-', '_')
    try:
        import torch

        if args.software == 'transformers':
            import transformers as library
        else:
            import pytorch_pretrained_bert as library
    except ImportError as error:
        raise MissingExtraError(f'{args.software} is not installed ({error})') from error
    class_name = {
        'bert': 'BertForQuestionAnswering' if has_span else 'BertForPreTraining',
        'gpt': 'OpenAIGPTLMHeadModel',
        'gpt2': 'GPT2LMHeadModel',
    }[args.family]
    model = load_torch(args, library, class_name, config)
    words, types, keep = (torch.tensor(inputs[key]).long() for key in ('words', 'types', 'keep'))
    layers = {}
    stack = model.bert.encoder.layer if args.family == 'bert' else model.transformer.h

    def keeper(number):
        def keep_output(module, arguments, output):
            output = output[0] if isinstance(output, (tuple, list)) else output
            layers[f'layer {number}'] = output.numpy()

        return keep_output

    for number, layer in enumerate(stack, 1):
        if args.family == 'gpt2' and number == len(stack):
            layer = model.transformer.ln_f  # our last layer's output is normalized
        layer.register_forward_hook(keeper(number))
    with torch.no_grad():
        if args.family != 'bert':
            scores = first_of(model(words))
            return {**layers, 'next word': torch.log_softmax(scores, -1).numpy()}
        _, pooled = list_of(model.bert(words, attention_mask=keep, token_type_ids=types))[:2]
        result = {**layers, 'pooled vector': pooled.numpy()}
        span = model
        if not has_span:
            outputs = list_of(model(words, attention_mask=keep, token_type_ids=types))
            for name, scores in zip(('masked words', 'next sentence'), outputs):
                result[name] = torch.log_softmax(scores, -1).numpy()
            span_config = model.bert.config
            span_config.num_labels = 2  # start and end; a classifier's folder has its own number
            span = library.BertForQuestionAnswering(span_config).eval()
            span.bert = model.bert
            span.qa_outputs.weight.copy_(torch.tensor(inputs['span']))
            span.qa_outputs.bias.zero_()
        shortest = int(inputs['valid'].min())
        text = {'token_type_ids': types[:, :shortest]}
        start, end = list_of(span(words[:, :shortest], **text))[:2]
        answers = dict(zip(('start_positions', 'end_positions'), torch.tensor(inputs['answers'])))
        answers = {key: value.long() for key, value in answers.items()}
        loss = first_of(span(words[:, :shortest], **text, **answers))
    return {**result, 'answer start': start.numpy(), 'answer end': end.numpy(),
            'answer loss': loss.reshape(1).numpy()}  # fmt: skip


def list_of(outputs):
    return list(outputs.values()) if isinstance(outputs, dict) else list(outputs)


def first_of(outputs):
    is_tensor = not isinstance(outputs, (dict, tuple, list))
    return outputs if is_tensor else list_of(outputs)[0]


def load_torch(args, library, class_name, config):
    """A model of the library's with the checkpoint, as the library reads it."""
    import torch

    model_class = getattr(library, class_name)
    weights = files_in_folder(args.checkpoint).weights
    config_class = getattr(library, type(config).__name__)
    _, fields = config.to_format('huggingface', class_name)
    if args.software == 'transformers':
        their_config = config_class.from_dict(fields)
    else:
        their_config = config_class(fields['vocab_size'])
        known = {key: value for key, value in fields.items() if hasattr(their_config, key)}
        their_config.__dict__.update(known)
    if weights.endswith(('.safetensors', '.bin', '.index.json')):
        if args.software == 'transformers':
            return model_class.from_pretrained(args.checkpoint, config=their_config).eval()
        # 2019's library doesn't read today's formats by itself
        state = {key: torch.tensor(value) for key, value in read_tensors(weights)[0].items()}
        model = part = model_class(their_config)
        if not any(key in model.state_dict() for key in state):  # the file of a backbone
            part = model.bert if args.family == 'bert' else model.transformer
        lacking, _ = part.load_state_dict(state, strict=False)
        parameters = {key for key, _ in part.named_parameters()}  # not the masks that it stores
        heads = ('lm_head', 'cls', 'qa_outputs', 'bert.pooler', 'pooler')
        lacking = [key for key in lacking if key in parameters and not key.startswith(heads)]
        if lacking:
            raise InputError(f'{weights!r} lacks {", ".join(lacking[:20])}')
        return model.eval()
    model = model_class(their_config)
    module = sys.modules[model_class.__module__]
    if weights.endswith('params_shapes.json'):
        load, base, path = module.load_tf_weights_in_openai_gpt, model, args.checkpoint
    elif weights.endswith('.index'):
        load = getattr(module, f'load_tf_weights_in_{args.family}')
        base, path = model, weights[: -len('.index')]
    else:
        raise InputError(f'{weights!r} is not a file that {args.software} reads')
    if args.family != 'bert':
        base = model.transformer
    # their converters write on standard output, and end at names that the model lacks
    with contextlib.redirect_stdout(sys.stderr):
        try:
            load(base, their_config, path) if args.software == 'transformers' else load(base, path)
        except (AttributeError, AssertionError, OSError) as error:
            raise InputError(f'{args.software} cannot read {path!r}: {error}') from error
    return model.eval()


# -- TensorFlow -----------------------------------------------------------------------------------


def load_original(path):
    """Import a module written for TensorFlow 1, under TensorFlow 2's compatibility mode.

    Of ``tf.contrib``, which is gone, it gets what Google's and OpenAI's models use: the layer
    normalization and ``HParams``.

    Parameters
    ----------
    path : str
        Of the module, such as ``modeling.py`` of google-research/bert. Modules beside it are found.
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


class Session:
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


def run_tensorflow(args, inputs, config):
    """The outputs of the original program for TensorFlow by name."""
    try:
        import tensorflow  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    run = {'bert': run_google_bert, 'gpt2': run_openai_gpt2, 'transfo_xl': run_google_xl}
    return run[args.family](args, inputs, config)


def original_in(args, *names):
    path = os.path.join(args.code, *names)
    if not os.path.isfile(path):
        raise InputError(f'--code {args.code!r} is not a clone of the original: it lacks {path!r}')
    return load_original(path)


def run_google_bert(args, inputs, config):
    training = original_in(args, 'run_pretraining.py')
    tf, modeling = training.tf, training.modeling
    for name in list(tf.flags.FLAGS):  # both programs define the same
        delattr(tf.flags.FLAGS, name)
    squad = original_in(args, 'run_squad.py')
    session = Session(tf, args.checkpoint)
    # the activation is the program's own, whatever ours is told
    _, fields = config.to_format('tensorflow', '')
    with open(files_in_folder(args.checkpoint).config, encoding='utf-8') as file:
        fields['hidden_act'] = json.load(file).get('hidden_act', 'gelu')
    settings = modeling.BertConfig.from_dict(fields)
    batch, length = inputs['words'].shape
    with tf.Graph().as_default():
        words, types, mask = (
            tf.constant(inputs[name].astype('int32')) for name in ('words', 'types', 'keep')
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
    shortest = int(inputs['valid'].min())
    with tf.Graph().as_default():
        words, types = (tf.constant(inputs[name][:, :shortest]) for name in ('words', 'types'))
        start, end = squad.create_model(settings, False, words, tf.ones_like(words), types, False)
        losses = [
            tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=scores, labels=places)
            )
            for scores, places in zip((start, end), inputs['answers'])
        ]
        outputs = {'answer start': start, 'answer end': end,
                   'answer loss': tf.reshape(sum(losses) / 2, [1])}  # fmt: skip
        head = {'cls/squad/output_weights': inputs['span'],
                'cls/squad/output_bias': np.zeros(2, 'float32')}  # fmt: skip
        return {**result, **session.run(outputs, head)}


def run_openai_gpt2(args, inputs, config):
    original = original_in(args, 'src', 'model.py')
    tf = original.tf
    session = Session(tf, args.checkpoint)
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
        results = original.model(types.SimpleNamespace(**fields), tf.constant(inputs['words']))
        outputs = {f'layer {i}': layer for i, layer in enumerate(layers, 1)}
        return session.run({**outputs, 'next word': tf.nn.log_softmax(results['logits'])})


def run_google_xl(args, inputs, config):
    original = original_in(args, 'tf', 'model.py')
    tf = original.tf
    session = Session(tf, args.checkpoint)
    names = ('n_layer', 'd_model', 'd_embed', 'n_head', 'd_head', 'd_inner', 'cutoffs', 'div_val',
             'tie_projs', 'same_length', 'clamp_len', 'untie_r')  # fmt: skip
    settings = {name: getattr(config, name) for name in names}
    batch, length = inputs['words'].shape
    weights = tf.initializers.zeros()
    with tf.Graph().as_default():
        mems = [tf.zeros((length, batch, config.d_model)) for _ in range(config.n_layer)]
        loss, mems = original.transformer(
            dec_inp=tf.constant(inputs['words'][:, :-1].T), mems=mems, mem_len=length,
            target=tf.constant(inputs['words'][:, 1:].T), n_token=config.vocab_size, dropout=0.0,
            dropatt=0.0, initializer=weights, is_training=False, use_tpu=False, **settings,
        )  # fmt: skip
        states = [tf.transpose(memory, (1, 0, 2))[:, 1:] for memory in mems]
        outputs = {f'input of layer {i}': state for i, state in enumerate(states, 1)}
        return session.run({**outputs, 'next word, mean loss': tf.reshape(loss, [1])})


# -- comparison -----------------------------------------------------------------------------------


def compare(ours, theirs, keep):
    """Rows of the table: what both have, where there is no padding."""
    rows = []
    for name in ours:
        if name not in theirs:
            continue
        one, two = ours[name].astype('float64'), theirs[name].astype('float64')
        if one.shape != two.shape:
            raise InputError(f'{name}: our shape is {one.shape}, and theirs is {two.shape}')
        if one.shape[:2] == keep.shape:
            one, two = one[keep], two[keep]
        difference = one - two
        row = {
            'name': name,
            'max': float(np.abs(difference).max()),
            'std': float(difference.std()),
            'std_of_values': float(two.std()),
        }
        if name in ('masked words', 'next sentence', 'next word'):
            row['same'] = int((one.argmax(-1) == two.argmax(-1)).sum())
            row['of'] = int(one[..., 0].size)
        rows.append(row)
    return rows


def print_table(rows):
    print(f'{"":24}{"max difference":>16}{"its std":>12}{"std of values":>16}  same prediction')
    for row in rows:
        same = f'  {row["same"]} of {row["of"]}' if 'same' in row else ''
        print(f'{row["name"]:24}{row["max"]:16.3g}{row["std"]:12.3g}{row["std_of_values"]:16.4g}'
              + same)  # fmt: skip


def plot(path, rows, title):
    """Draw maximum and standard deviation of each row's differences to a PNG file."""
    figure = new_figure(9, 4.5)
    axes = figure.subplots()
    places = range(len(rows))
    for kind, label in (('max', 'largest'), ('std', 'standard deviation')):
        # a logarithmic axis has no place for 0
        values = [max(row[kind], 1e-12) for row in rows]
        axes.plot(places, values, marker='o', label=label)
    axes.set_yscale('log')
    axes.set_xticks(list(places), [row['name'] for row in rows], rotation=60, ha='right')
    axes.set(ylabel='difference', title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(path, figure)


def main(argv=None):
    args = parse(argv)
    cli.setup_logging()
    block, family = open_ours(args)
    if args.output_dir:
        make_writable_dir(args.output_dir)
    inputs = make_inputs(args, block)
    ours = run_ours(block, family, inputs)
    if args.software == 'tensorflow':
        theirs = run_tensorflow(args, inputs, block.config)
    else:
        theirs = run_torch(args, inputs, block.config, hasattr(block, 'span_classifier'))
    rows = compare(ours, theirs, inputs['keep'])
    print_table(rows)
    if args.output_dir:
        title = f'{os.path.basename(os.path.normpath(args.checkpoint))}: {args.software} and ours'
        record = {**vars(args), 'shape': list(inputs['words'].shape), 'differences': rows}
        write_json(os.path.join(args.output_dir, 'comparison.json'), record)
        plot(os.path.join(args.output_dir, 'comparison.png'), rows, title)


if __name__ == '__main__':
    sys.exit(cli.run(main))
