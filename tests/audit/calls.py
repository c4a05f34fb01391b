"""The public API called with wrong types, shapes, ranges and NaN, from its signatures.

What users call most is called with right arguments of which some are made wrong: blocks (plain,
hybridized, exported), generation, tokenizers, pipelines, configurations, optimizers, loaders. A
TypeError is a refusal, too. All other public names get values by the names of their parameters.
There any error of Python's is a refusal; a crash, a hang, or memory without bounds has failed.
"""

import importlib
import inspect
import pkgutil

import mxnet as mx
import numpy as np
import originals
import tiny
import tiny_models
from arrays import imported
from target import RIGHT, Target, Unequal
from wrong import change, worse, worse_array

import bert
import gpt2
import model_zoo
import transfo_xl
from bert_embedding import BertEmbedding
from export import export_block
from model_zoo import optimizer
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import InputError
from model_zoo.tokenization import FileTokenizer

__all__ = ['targets']

PACKAGES = ('model_zoo', 'bert', 'gpt', 'gpt2', 'transfo_xl', 'bert_embedding', 'export')
#: Python's own answers to a wrong argument
PYTHONS = (TypeError, ValueError, AttributeError, KeyError, IndexError, AssertionError,
           NotImplementedError, OverflowError, ZeroDivisionError, OSError, ImportError,
           RuntimeError, RecursionError, UnicodeError)  # fmt: skip


# -- what users call ----------------------------------------------------------------------------


def _check_finite(value):
    if isinstance(value, mx.nd.NDArray):
        value.wait_to_read()
        if not np.isfinite(value.asnumpy().astype('float64')).all():
            raise Unequal('the result is not finite')
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_finite(each)


def _words(*shape):
    return mx.nd.array(np.arange(np.prod(shape)).reshape(shape) % 17 + 1)


def _blocks():
    """Name -> function that makes a block and right arguments of it."""
    config = tiny.bert_config(40, num_hidden_layers=1)
    decoder = tiny.decoder_config(gpt2.GPT2Config, 40, n_layer=1)
    text = {'words': _words(2, 5), 'token_types': mx.nd.zeros((2, 5)),
            'valid_length': mx.nd.array([5, 3])}  # fmt: skip
    pair = {**text, 'labels': mx.nd.array([0, 1])}
    return {
        'BertModel': (lambda: bert.BertModel(config, use_decoder=True, use_classifier=True),
                      {**text, 'masked_positions': mx.nd.array([[1, 2], [0, 1]])}),
        'BertForSequenceClassification': (
            lambda: bert.BertForSequenceClassification(config), {**pair, 'head_mask': None}),
        'BertForTokenClassification': (
            lambda: bert.BertForTokenClassification(config), {**text, 'labels': _words(2, 5) % 2}),
        'BertForQuestionAnswering': (
            lambda: bert.BertForQuestionAnswering(config),
            {**text, 'start_positions': mx.nd.array([1, 0]), 'end_positions': mx.nd.array([2, 1])}),
        'BertForMaskedLM': (lambda: bert.BertForMaskedLM(config), {**text}),
        'BertForMultipleChoice': (lambda: bert.BertForMultipleChoice(config), {
            'words': _words(2, 3, 5), 'token_types': mx.nd.zeros((2, 3, 5)),
            'valid_length': mx.nd.array([[5, 3, 1]] * 2), 'labels': mx.nd.array([0, 2])}),
        'GPT2LMHeadModel': (lambda: gpt2.GPT2LMHeadModel(decoder), {
            'words': _words(2, 5), 'token_types': None, 'valid_length': mx.nd.array([5, 3]),
            'position_ids': None}),
        'GPT2DoubleHeadsModel': (lambda: gpt2.GPT2DoubleHeadsModel(decoder), {
            'words': _words(2, 2, 5), 'mc_token_ids': mx.nd.array([[4, 3]] * 2)}),
        'TransfoXLLMHeadModel': (
            lambda: transfo_xl.TransfoXLLMHeadModel(tiny.transfo_xl_config(40, mem_len=8)),
            {'words': _words(2, 5)}),
    }  # fmt: skip


def _block_target(name, make, arguments, hybrid):
    def prepare(folder):
        block = tiny.initialized(make())
        if hybrid:
            block.hybridize(static_alloc=True, static_shape=True)
        _check_finite(block(**arguments))
        return block

    def attempt(block, rng, folder):
        given = change(arguments, rng)
        _note(folder, name, given)
        try:
            _check_finite(block(**given))
        except TypeError as error:
            raise InputError(str(error)) from error
        _check_finite(block(**arguments))  # it still works
        return RIGHT

    how = 'hybridized' if hybrid else 'plain'
    return Target(f'calls/{how} {name}', prepare, attempt, seconds=60)


def _exported(folder):
    """Graphs with right inputs; MXNet checks their shapes, and nothing checks their values."""
    found = []
    for name in ('BertForSequenceClassification', 'GPT2LMHeadModel'):
        make, arguments = _blocks()[name]
        export_block(tiny.initialized(make()), str(folder), name)
        arrays = [arguments[each] for each in ('words', 'token_types', 'valid_length')
                  if isinstance(arguments[each], mx.nd.NDArray)]  # fmt: skip
        block = imported(folder / name, len(arrays))
        block.hybridize(static_alloc=True)
        found.append((block, arrays))
    return found


def _run_exported(found, rng, folder):
    block, arrays = rng.choice(found)
    given = list(arrays)
    for place in rng.sample(range(len(given)), rng.choice([1, 2])):
        given[place] = worse_array(given[place], rng)
    _note(folder, 'exported', given)
    if any(not isinstance(each, mx.nd.NDArray) or each.stype != 'default' for each in given):
        return RIGHT  # MXNet itself is called here, and takes none of them
    try:
        made = block(*given)
        for each in made if isinstance(made, (list, tuple)) else [made]:
            each.wait_to_read()
    except (mx.MXNetError, ValueError, TypeError, AssertionError) as error:
        raise InputError(str(error).splitlines()[0][:500]) from error
    return RIGHT


def _objects(folder):
    """What is called otherwise: [(name, callable, right arguments)]."""
    folders = {name: folder / name for name in ('bert', 'gpt2', 'file', 'words', 'sentences')}
    for each in folders.values():
        each.mkdir(exist_ok=True)
    path = tiny_models.save_bert(folders['bert'], bert.BertForSequenceClassification, ['a', 'b'])
    originals.tokenizer_json(folders['file'])
    originals.sentences_today(folders['sentences'])
    writer = gpt2.GPT2LMHeadModel.from_pretrained(tiny_models.save_gpt2(folders['gpt2']))
    tokenizers = [bert.BertTokenizer.from_pretrained(path), originals.words(folders['words']),
                  gpt2.GPT2Tokenizer.from_pretrained(str(folders['gpt2'])),
                  FileTokenizer.from_pretrained(str(folders['file']))]  # fmt: skip
    classify = model_zoo.pipeline('text-classification', path)
    embed = BertEmbedding(str(folders['sentences']))
    samples = [Sample(np.arange(n), np.zeros(n), 1) for n in range(1, 9)]
    configs = [
        (bert.BertConfig, tiny.BERT), (gpt2.GPT2Config, {**tiny.DECODER, 'n_ctx': 24}),
        (transfo_xl.TransfoXLConfig, tiny.TRANSFO_XL),
    ]  # fmt: skip
    found = [
        ('generate', writer.generate, {
            'prompts': [[5, 6], [7]], 'max_new_tokens': 2, 'temperature': 1.0, 'top_k': 3,
            'top_p': 0.9, 'num_return_sequences': 2, 'seed': 1, 'stop_tokens': [3],
            'overflow': 'error'}),
        ('beams', writer.generate, {'prompts': [[5, 6], [7]], 'max_new_tokens': 2, 'num_beams': 2,
                                    'length_penalty': 1.0, 'num_return_sequences': 2}),
        ('pipeline', classify, {'inputs': ['a cat', 'b']}),
        ('sentence_vectors', embed.sentence_vectors, {
            'sentences': ['a', 'b'], 'pooling': 'mean', 'normalize': True, 'prompt': 'x'}),
        ('embedding', embed.embedding, {'sentences': ['a cat'], 'oov_way': 'avg'}),
        ('open_model', model_zoo.open_model, {'name_or_folder': path, 'task': 'classification'}),
        ('get_model', model_zoo.get_model, {
            'name': 'bert_12_768_12', 'dataset_name': None, 'pretrained': False,
            'num_layers': 1}),
        ('loader', lambda **given: list(BucketedLoader(**given)), {
            'features': samples, 'batch_size': 3, 'shuffle': True, 'seed': 0, 'num_buckets': 2,
            'round_to': 8, 'pad_val': 0}),
        *((f'{each.__name__}', lambda each=each, **given: each(40, **given), dict(fields))
          for each, fields in configs),
        *((f'{type(each).__name__}.{method}', getattr(each, method), arguments)
          for each in tokenizers for method, arguments in _methods(each).items()),
        *((name, lambda name=name, **given: optimizer.get_schedule(name, **given)(3),
           {'base_lr': 0.1, 'warmup': 0.1, 't_total': 10, 'cycles': None})
          for name in ('warmup_linear', 'warmup_cosine', 'warmup_constant')),
        ('BERTAdam', optimizer.BERTAdam, {'learning_rate': 0.1, 'beta1': 0.9, 'beta2': 0.99,
                                          'epsilon': 1e-6, 'max_grad_norm': 1.0}),
        ('LAMB', optimizer.LAMB, {'learning_rate': 0.1, 'beta1': 0.9, 'lower_bound': 0.1}),
    ]  # fmt: skip
    for name, function, arguments in found:
        if name != 'get_model':
            function(**arguments)
    return found


def _methods(tokenizer):
    """Method of a tokenizer -> right arguments of it."""
    made = {'convert_ids_to_tokens': {'ids': [1, 2]},
            'convert_tokens_to_ids': {'tokens': tokenizer.tokenize('a cat')}}  # fmt: skip
    if isinstance(tokenizer, transfo_xl.TransfoXLTokenizer):
        return {**made, 'tokenize': {'line': 'a cat'}, 'decode': {'indices': [1, 2]},
                'encode_batch': {'texts': ['a', 'b'], 'max_length': 8}}  # fmt: skip
    return {**made, 'tokenize': {'text': 'a cat'}, 'decode': {'ids': [1, 2]},
            'encode': {'text': 'a cat', 'pair': 'b', 'max_length': 8},
            'encode_batch': {'texts': ['a', 'b'], 'pairs': ['c', 'd'], 'max_length': 8,
                             'round_to': 4, 'pad': True}}  # fmt: skip


def _call(found, rng, folder):
    name, function, arguments = rng.choice(found)
    given = change(arguments, rng)
    _note(folder, name, given)
    if name == 'get_model' and not _is_small(given['num_layers']):
        given['num_layers'] = 'x'  # a billion layers of one's own are one's own fault
    try:
        made = function(**given)
    except TypeError as error:
        raise InputError(str(error)) from error
    if isinstance(made, (mx.nd.NDArray, list, tuple)):
        _check_finite(made)
    return RIGHT


def _is_small(value):
    return not isinstance(value, (int, float)) or value != value or abs(value) < 100


# -- all other names ----------------------------------------------------------------------------


def _names():
    """[(name, callable)] of everything that the rooms export, but commands and what never ends."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = [package, *(each.name for each in pkgutil.walk_packages(
            module.__path__, f'{package}.'))]  # fmt: skip
        for name in names:
            if any(part in name for part in ('.app', '.server', '.cli', '.environment')):
                continue
            module = importlib.import_module(name)
            for each in getattr(module, '__all__', ()):
                value = getattr(module, each, None)
                if callable(value) and str(getattr(value, '__module__', '')).startswith(PACKAGES):
                    found[f'{value.__module__}.{each}'] = value
    leave = ('download', 'register', 'locked', 'lock_file', 'join_gluonnlp', 'end_quietly',
             'remove_leftovers', 'HubSource', 'Repository', 'use_all', 'bound_kernel',
             'copy_on_one', 'join_cluster', 'RayTasks')  # fmt: skip
    return sorted((name, value) for name, value in found.items()
                  if not any(each in name for each in leave))  # fmt: skip


def _values(folder):
    """Parameter's name -> a right value of it."""
    path = tiny_models.save_bert(folder / 'bert', bert.BertForSequenceClassification, ['a', 'b'])
    opened = model_zoo.open_model(path)
    tokenizer = opened.tokenizer
    return {
        'config': opened.block.config, 'block': opened.block, 'model': opened.block,
        'bert': bert.BertModel(tiny.bert_config(40)), 'tokenizer': tokenizer, 'opened': opened,
        'vocab': tokenizer.vocab, 'path': f'{path}/model.params', 'folder': path, 'F': mx.nd,
        'directory': str(folder), 'name': 'bert_12_768_12', 'text': 'a cat', 'texts': ['a', 'b'],
        'tokens': ['a', 'cat'], 'ids': [1, 2], 'words': _words(2, 5), 'scores': _words(2, 3),
        'labels': mx.nd.array([0, 1]), 'valid_length': mx.nd.array([5, 3]), 'units': 16,
        'num_heads': 2, 'head_size': 8, 'hidden_size': 32, 'dropout': 0.1, 'initializer': None,
        'batch_size': 2, 'seed': 0, 'max_len': 8, 'length': 4, 'lengths': [1, 2, 3], 'size': 4,
        'samples': [Sample(np.arange(3), np.zeros(3), 1)] * 4, 'params': None, 'prefix': None,
        'tensors': {'a': np.ones((2, 3), 'float32')}, 'data': b'abc', 'array': mx.nd.ones((2, 3)),
        'shape': (2, 3), 'lr': 0.1, 'base_lr': 0.1, 'pretrained': False, 'count': 3, 'k': 2,
        'vocab_file': f'{path}/vocab.txt', 'files': [f'{path}/vocab.txt'], 'rng': None,
        'vectors': mx.nd.ones((2, 4)), 'queries': np.ones((2, 4)), 'known': ['a', 'b'],
        'source': f'{path}/vocab.txt', 'ctx': None, 'root': str(folder), 'task': 'classification',
        'num_buckets': 2, 'value': 1.5, 'values': [1.0, 2.0], 'steps': 4, 'parameters': [],
        'name_or_folder': path, 'outputs': np.ones((2, 3)), 'axis': 0, 'dtype': 'float32',
        'mask': mx.nd.ones((2, 5)), 'number': 1, 'items': [1, 2], 'state_dict': {},
    }  # fmt: skip


def _signatures(folder):
    return _names(), _values(folder)


def _call_any(shared, rng, folder):
    names, values = shared
    name, function = rng.choice(names)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return RIGHT
    given = {}
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            continue
        if each.default is each.empty or rng.random() < 0.3:
            right = values.get(each.name, each.default if each.default is not each.empty else None)
            given[each.name] = worse(right, rng) if rng.random() < 0.4 else right
    given = {key: value if _is_small(value) else 7 for key, value in given.items()}
    if isinstance(given.get('pretrained'), bool) or 'dataset_name' in given:
        given['pretrained'] = False
    _note(folder, name, given)
    try:
        made = function(**given)
    except Exception as error:
        # of sparse arrays MXNet raises an Exception of no kind
        if not isinstance(error, (*PYTHONS, mx.MXNetError)) and type(error) is not Exception:
            raise
        raise InputError(f'{type(error).__name__}: {str(error).splitlines()[:1]}'[:900]) from error
    if isinstance(made, mx.nd.NDArray):
        made.wait_to_read()
    return RIGHT


def _note(folder, name, given):
    """Keep what is called, for who looks at a failure."""
    (folder / 'call.txt').write_text(f'{name}\n{given!r}\n'[:20000], errors='backslashreplace')


def targets():
    made = [_block_target(name, make, arguments, hybrid)
            for name, (make, arguments) in _blocks().items()
            for hybrid in (False, True)]  # fmt: skip
    made.append(Target('calls/exported', _exported, _run_exported, seconds=60))
    made.append(Target('calls/objects', _objects, _call, seconds=60, memory=2 << 30))
    made.append(Target('calls/signatures', _signatures, _call_any, seconds=60, memory=2 << 30))
    return made
