"""From token vectors to a sentence vector, as a model of sentence-transformers does it."""

import dataclasses
import functools
import glob
import math
import os
import shutil
from typing import Any, Literal

import numpy as np

from ..checkpoint.readers import kept_sums, read_tensors, weights_in_folder
from ..checkpoint.tensor_files import write_safetensors
from ..errors import CheckpointError, InputError, UnknownNameError, reporting
from ..util.arrays import pool, sigmoid
from ..util.fields import Count
from ..util.files import write_json
from ..util.reading import check_json, read_json
from .files import MODULES_NAME, SENTENCE_CONFIGS, TOKENIZER_CONFIG, modules_in_folder

__all__ = ['SIMILARITIES', 'SentenceModules', 'modules_of', 'write_sentence_modules']

#: ways to make one vector of many, in the order in which several are joined
_MODES = {
    'cls': 'pooling_mode_cls_token',
    'max': 'pooling_mode_max_tokens',
    'mean': 'pooling_mode_mean_tokens',
    'mean_sqrt_len_tokens': 'pooling_mode_mean_sqrt_len_tokens',
    'weightedmean': 'pooling_mode_weightedmean_tokens',
    'lasttoken': 'pooling_mode_lasttoken',
}
#: classes of torch that a model may name for its layers and scores
_ACTIVATIONS = {
    'Identity': lambda x: x,
    'Tanh': np.tanh,
    'ReLU': lambda x: np.maximum(x, 0),
    'Sigmoid': sigmoid,
}
#: how similar two vectors are
SIMILARITIES = ('cosine', 'dot', 'euclidean', 'manhattan')
_FOLDER_CONFIG = 'config_sentence_transformers.json'


def _transformer_fields(task, output, name):
    method = dict[Literal['method', 'method_output_name'], Literal['forward', output]]
    return {
        'max_seq_length': Any,
        'do_lower_case': bool,
        'unpad_inputs': bool,  # saves time only
        'transformer_task': Literal[task],
        'modality_config': dict[Literal['text'], method],
        'module_output_name': Literal[name],
    }


_OF_ALL = {'__version__': Any, 'prompts': dict[str, str | None], 'default_prompt_name': str}
_NAMES = {'module_input_name': str, 'module_output_name': str}
#: kind of a part, or of a model -> fields of its file, with the values that are read or change
#: nothing; all others are refused
_FIELDS = {
    'SentenceTransformer': {
        **_OF_ALL,
        'model_type': Literal['SentenceTransformer'],
        'similarity_fn_name': Literal[SIMILARITIES],
        'truncate_dim': Count,
    },
    'CrossEncoder': {
        **_OF_ALL,
        'model_type': Literal['CrossEncoder'],
        'activation_fn': str,
        'keep_in_fp32_modules': list[str],  # MXNet's float32 does
    },
    'Transformer': _transformer_fields(
        'feature-extraction', 'last_hidden_state', 'token_embeddings'
    ),
    'Classifier': _transformer_fields('sequence-classification', 'logits', 'scores'),
    'Pooling': {
        'word_embedding_dimension': int,
        'embedding_dimension': int,
        'pooling_mode': Any,
        'include_prompt': bool,
        **dict.fromkeys(_MODES.values(), bool),
    },
    'Dense': {
        **dict.fromkeys(('in_features', 'out_features'), int),
        **dict.fromkeys(('bias', 'use_residual'), bool),
        'activation_function': str,
        **_NAMES,
    },
    'Normalize': _NAMES,
    'LayerNorm': {'dimension': int},
    'Dropout': {'dropout': float},
}
_TINY = 1e-12


@dataclasses.dataclass(frozen=True)
class SentenceModules:
    """The modules after the transformer, and how a sentence is prepared.

    Parameters
    ----------
    steps, token_steps : sequence of callable
        ``step(vector) -> vector``, one after the other; of a cross-encoder, of its score. Those of
        the tokens come before the pooling.
    prompts : dict of str to str
        Name -> the text that precedes a sentence.
    truncate_dim : int, optional
        How many of a vector's numbers are kept.
    similarity : str
        One of `SIMILARITIES`.
    """

    modes: tuple = ('mean',)
    steps: tuple = ()
    token_steps: tuple = ()
    truncate_dim: int | None = None
    similarity: str = SIMILARITIES[0]
    max_length: int | None = None
    lowers: bool = False
    prompts: dict = dataclasses.field(default_factory=dict)
    default_prompt: str | None = None
    counts_prompt: bool = True

    def prompt(self, name=None):
        """Return the text of a prompt, by default of `default_prompt`; empty without a prompt."""
        name = self.default_prompt if name is None else name
        if name is not None:
            UnknownNameError.check('prompt', name, self.prompts)
        return self.prompts.get(name) or ''

    def vector(self, states, skip=0):
        """Return a sentence's vector from the states, (tokens, units), of all its tokens."""
        skip = 0 if self.counts_prompt else min(skip, len(states) - 1)
        for step in self.token_steps:
            states = step(states)
        vector = np.concatenate([pool(states, mode, skip) for mode in self.modes])
        for step in self.steps:
            vector = step(vector)
        return vector[: self.truncate_dim]

    @property
    def pooling(self):
        """The pooling, if there is nothing else but normalization; InputError otherwise."""
        steps = [*self.token_steps, *(step for step in self.steps if step is not normalized)]
        if len(self.modes) > 1 or steps or self.truncate_dim:
            problem = 'several poolings, a layer, or `truncate_dim` cannot be part of a block'
            raise InputError(problem)
        return self.modes[0]

    def units(self, units):
        """Return the length of a sentence's vector, given the length of a token's."""
        with reporting('the parts of the model do not fit together', errors=ValueError):
            return len(self.vector(np.zeros((1, units), np.float32)))


def normalized(vectors):
    """Return vectors, in the last axis, scaled to Euclidean length 1; zeros stay zeros."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), _TINY)


#: data set of the catalogue, whose weights also come without the files that say the rest -> modules
KNOWN = {
    'all_minilm_l6_v2': SentenceModules(steps=(normalized,), max_length=256),
    'all_mpnet_base_v2': SentenceModules(steps=(normalized,), max_length=384),
}


def modules_of(files, kind='SentenceTransformer'):
    """Return the modules of a model's `Files`; None if it isn't one of sentence-transformers.

    A model of the other `kind`, 'CrossEncoder', has the function of its scores as its only step.
    """
    if files.modules is None or files.modules in KNOWN:
        return KNOWN.get(files.modules)
    folder = files.modules
    said = _fields_in(folder, _FOLDER_CONFIG).get('model_type', kind)
    if {said, kind} == {'SentenceTransformer', 'CrossEncoder'}:
        return None
    model = _fields_in(folder, _FOLDER_CONFIG, kind)
    first, *modules = modules_in_folder(folder)
    options, steps, token_steps = {}, [], []
    for module in modules:
        path, is_vector = os.path.join(folder, module.path), 'modes' in options
        is_second = module.kind == 'Pooling' and is_vector
        if module.kind not in _STEPS or is_second or kind == 'CrossEncoder':
            raise InputError(f'the part {module.kind} of {folder!r} is not supported here')
        fields = _fields_in(path, 'config.json', module.kind)
        if module.kind == 'Pooling':
            options = _read_pooling(path, fields)
            continue
        wanted = 'sentence_embedding' if is_vector else 'token_embeddings'
        for name in _NAMES:
            found = fields.get(name) or fields.get('module_input_name') or 'sentence_embedding'
            if found != wanted and module.kind != 'Dropout':
                problem = f'of {path!r} is {found!r:.80}: only {wanted} is supported here'
                raise InputError(problem, field=name)
        (steps if is_vector else token_steps).append(_STEPS[module.kind](path, fields))
    if kind == 'CrossEncoder':
        steps = [activation(model['activation_fn'])] if model.get('activation_fn') else []
    transformer = 'Classifier' if kind == 'CrossEncoder' else 'Transformer'
    options.update(_settings(os.path.join(folder, first.path), transformer))
    return SentenceModules(
        steps=tuple(filter(None, steps)),
        token_steps=tuple(filter(None, token_steps)),
        prompts=model.get('prompts') or {},
        default_prompt=model.get('default_prompt_name'),
        truncate_dim=model.get('truncate_dim'),
        similarity=model.get('similarity_fn_name') or SIMILARITIES[0],
        **options,
    )


def activation(name):
    """Return the function that a class of torch, by its full name, computes."""
    package, _, short = str(name).rpartition('.')
    known = _ACTIVATIONS if package.startswith('torch.nn') else ()
    UnknownNameError.check('activation function', short if known else name, known)
    return _ACTIVATIONS[short]


def _fields_in(folder, name, kind=None):
    """Read the file of a part or a model; with its `kind`, its fields are checked."""
    path = os.path.join(folder, name)
    fields = read_json(path, shape=dict, default={})
    for field, value in fields.items() if kind else ():
        if value is not None:
            if field not in _FIELDS[kind]:
                problem = f'is {value!r:.80} in {path!r}, which is not supported here'
                raise InputError(problem, field=field)
            with reporting(f'`{field}` of {path!r} is not supported here', errors=ValueError):
                check_json(value, _FIELDS[kind][field])
    return fields


def _read_pooling(folder, fields):
    modes = fields.get('pooling_mode')
    if modes is None:
        modes = [mode for mode, name in _MODES.items() if fields.get(name)] or ['mean']
    modes = modes if isinstance(modes, list) else [modes]
    for mode in map(str, modes):
        UnknownNameError.check(f'pooling in {folder!r}', mode, _MODES)
    return {'modes': tuple(modes), 'counts_prompt': fields.get('include_prompt', True)}


def _read_weights(folder, *names):
    """Read the arrays of a layer, float32; the first must be there, the others may be 0."""
    path = weights_in_folder(folder) or os.path.join(folder, 'model.safetensors')
    tensors, _ = read_tensors(path)
    if names[0] not in tensors:
        raise CheckpointError(f'{path!r} has no {names[0]}')
    return [np.asarray(tensors.get(name, 0), np.float32) for name in names]


def _read_dense(folder, fields):
    function = activation(fields.get('activation_function', 'torch.nn.Tanh'))
    weight, bias = _read_weights(folder, 'linear.weight', 'linear.bias')
    residual = None
    if fields.get('use_residual'):
        residual = np.eye(len(weight), dtype=np.float32)
        if weight.shape != residual.shape:
            (residual,) = _read_weights(folder, 'residual.weight')
    return functools.partial(_dense, weight, bias, residual, function)


def _dense(weight, bias, residual, function, vectors):
    made = function(vectors @ weight.T + bias).astype(np.float32)
    return made if residual is None else made + vectors @ residual.T


def _read_layer_norm(folder, fields):
    return functools.partial(_layer_norm, *_read_weights(folder, 'norm.weight', 'norm.bias'))


def _layer_norm(weight, bias, vectors):
    deviations = vectors - vectors.mean(axis=-1, keepdims=True)
    variance = (deviations**2).mean(axis=-1, keepdims=True)
    return deviations / np.sqrt(variance + 1e-5) * weight + bias


#: kind of a part -> ``step(path, fields)``, which reads it
_STEPS = {
    'Pooling': _read_pooling,
    'Dense': _read_dense,
    'Normalize': lambda path, fields: normalized,
    'LayerNorm': _read_layer_norm,
    'Dropout': lambda path, fields: None,
}


def _settings(transformer, kind):
    """Return how sentences are prepared for the first part, in the folder `transformer`."""
    found = (_fields_in(transformer, name, kind) for name in SENTENCE_CONFIGS)
    fields = next(filter(None, found), {})
    length = fields.get('max_seq_length')
    if length is None:
        length = _fields_in(transformer, TOKENIZER_CONFIG).get('model_max_length')
    is_number = isinstance(length, (int, float)) and -math.inf < length < math.inf
    length = int(length) if is_number else None
    return {'max_length': length, 'lowers': bool(fields.get('do_lower_case'))}


def copy_sentence_modules(files, folder):
    """Copy the modules of a model's `Files` behind a transformer in another folder.

    Returns the paths of the files.
    """
    source, own = files.modules, modules_of(files)
    content = read_json(os.path.join(source, MODULES_NAME))
    sources = [os.path.join(source, _FOLDER_CONFIG)]
    for module in content[1:]:
        sources += glob.glob(os.path.join(glob.escape(source), module['path'], '*'))
    paths = []
    for path in filter(os.path.isfile, sources):
        paths.append(os.path.join(folder, os.path.relpath(path, source)))
        os.makedirs(os.path.dirname(paths[-1]), exist_ok=True)
        shutil.copyfile(path, paths[-1])
    content[0]['path'] = ''
    sentences = {'max_seq_length': own.max_length, 'do_lower_case': own.lowers}
    for name, value in {SENTENCE_CONFIGS[0]: sentences, MODULES_NAME: content}.items():
        paths.append(os.path.join(folder, name))
        write_json(paths[-1], value)
    return paths


def write_sentence_modules(folder, units, pooling, normalize, max_length, lowers=False, dense=None):
    """Make a folder of a saved model one that sentence-transformers loads.

    With `dense`, the weight (outputs, units) and the bias (outputs,) of a last layer, its vectors
    are the outputs of this layer.
    """
    classes = ['Transformer', 'Pooling']
    classes += ['Normalize'] * normalize + ['Dense'] * (dense is not None)
    paths = [f'{number}_{name}' if number else '' for number, name in enumerate(classes)]
    modes = {name: mode == pooling for mode, name in _MODES.items()}
    modules = [
        {'idx': n, 'name': str(n), 'path': path, 'type': f'sentence_transformers.models.{name}'}
        for n, (name, path) in enumerate(zip(classes, paths))
    ]
    contents = {
        os.path.join(paths[1], 'config.json'): {'word_embedding_dimension': units, **modes},
        SENTENCE_CONFIGS[0]: {'max_seq_length': max_length, 'do_lower_case': lowers},
    }
    for path in paths:
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    with kept_sums(folder, begin=True) as written:
        if dense is not None:
            facts = {'in_features': units, 'out_features': len(dense[1]), 'bias': True}
            facts['activation_function'] = 'torch.nn.modules.linear.Identity'
            contents[os.path.join(paths[-1], 'config.json')] = facts
            written.append(os.path.join(folder, paths[-1], 'model.safetensors'))
            write_safetensors(written[-1], dict(zip(('linear.weight', 'linear.bias'), dense)))
        contents[MODULES_NAME] = modules  # last: it makes the folder one of sentence-transformers
        for name, content in contents.items():
            written.append(os.path.join(folder, name))
            write_json(written[-1], content)
