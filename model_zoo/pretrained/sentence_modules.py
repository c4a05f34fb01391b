"""From token vectors to a sentence vector, as a model of sentence-transformers does it."""

import glob
import math
import os
import shutil

import numpy as np
import safetensors.numpy

from ..checkpoint.readers import kept_sums, read_tensors, weights_in_folder
from ..errors import CheckpointError, InputError, UnknownNameError, reporting
from ..util.arrays import pool
from ..util.files import atomic_write, write_json
from ..util.reading import read_json
from .files import MODULES_NAME, SENTENCE_CONFIGS, modules_in_folder, read_tokenizer_config

__all__ = [
    'KNOWN',
    'SentenceModules',
    'copy_sentence_modules',
    'modules_of',
    'normalized',
    'write_sentence_modules',
]

#: ways to make one vector of many, in the order in which several are joined
_MODES = {
    'cls': 'pooling_mode_cls_token',
    'max': 'pooling_mode_max_tokens',
    'mean': 'pooling_mode_mean_tokens',
    'mean_sqrt_len_tokens': 'pooling_mode_mean_sqrt_len_tokens',
    'weightedmean': 'pooling_mode_weightedmean_tokens',
    'lasttoken': 'pooling_mode_lasttoken',
}
_ACTIVATIONS = {
    'Identity': lambda x: x,
    'Tanh': np.tanh,
    'ReLU': lambda x: np.maximum(x, 0),
    'Sigmoid': lambda x: 1 / (1 + np.exp(-x)),
}
_TINY = 1e-12


class SentenceModules:
    """The modules after the transformer, and how a sentence is prepared.

    Parameters
    ----------
    steps : sequence of callable
        ``step(vector) -> vector``, one after the other.
    prompts : dict of str to str
        Name -> the text that precedes a sentence.
    """

    def __init__(
        self,
        modes=('mean',),
        steps=(),
        max_length=None,
        lowers=False,
        prompts=None,
        default_prompt=None,
        counts_prompt=True,
    ):
        self.modes, self.steps = tuple(modes), tuple(steps)
        self.max_length, self.lowers = max_length, lowers
        self.prompts, self.default_prompt = dict(prompts or {}), default_prompt
        self.counts_prompt = counts_prompt

    def prompt(self, name=None):
        """Return the text of a prompt, by default of `default_prompt`; empty if there is none."""
        name = self.default_prompt if name is None else name
        if name is not None and name not in self.prompts:
            raise UnknownNameError.of('prompt', name, self.prompts)
        return self.prompts.get(name) or ''

    def vector(self, states, skip=0):
        """Return a sentence's vector from the states, (tokens, units), of all its tokens."""
        skip = 0 if self.counts_prompt else min(skip, len(states) - 1)
        vector = np.concatenate([pool(states, mode, skip) for mode in self.modes])
        for step in self.steps:
            vector = step(vector)
        return vector

    @property
    def pooling(self):
        """The pooling, if there is nothing else but normalization; InputError otherwise."""
        if len(self.modes) > 1 or any(step is not normalized for step in self.steps):
            raise InputError(
                'the model has several poolings or a dense layer; only one pooling and '
                'normalization can be part of a block'
            )
        return self.modes[0]

    def units(self, units):
        """Return the length of a sentence's vector, given the length of a token's."""
        with reporting('the parts of the model do not fit together', errors=ValueError):
            return len(self.vector(np.zeros((1, units), np.float32)))


def normalized(vector):
    """Return a vector scaled to Euclidean length 1."""
    return vector / max(np.linalg.norm(vector), _TINY)


#: data set of the catalogue, whose weights also come without the files that say the rest -> modules
KNOWN = {'all_minilm_l6_v2': SentenceModules(steps=[normalized], max_length=256)}


def modules_of(files):
    """Return the modules of a model's `Files`; None if it isn't one of sentence-transformers."""
    if files.modules is None or files.modules in KNOWN:
        return KNOWN.get(files.modules)
    folder = files.modules
    modules, options, steps = modules_in_folder(folder), {}, []
    for module in modules[1:]:
        path = os.path.join(folder, module.path)
        if module.kind == 'Pooling' and 'modes' not in options and not steps:
            options.update(_read_pooling(path))
        elif module.kind == 'Dense' and 'modes' in options:
            steps.append(_read_dense(path))
        elif module.kind == 'Normalize' and 'modes' in options:
            steps.append(normalized)
        elif module.kind != 'Dropout':
            raise InputError(
                f'{folder!r} has a part {module.kind} that is not supported here; there are one '
                'Pooling, then Dense, Normalize and Dropout'
            )
    settings = _settings(folder, os.path.join(folder, modules[0].path))
    return SentenceModules(steps=steps, **options, **settings)


def _read_pooling(folder):
    fields = read_tokenizer_config(folder, 'config.json')
    modes = fields.get('pooling_mode')
    if modes is None:
        modes = [mode for mode, name in _MODES.items() if fields.get(name)] or ['mean']
    modes = modes if isinstance(modes, list) else [modes]
    for mode in modes:
        if not isinstance(mode, str) or mode not in _MODES:
            raise UnknownNameError.of(f'pooling in {folder!r}', mode, _MODES)
    return {'modes': modes, 'counts_prompt': fields.get('include_prompt', True)}


def _read_dense(folder):
    fields = read_tokenizer_config(folder, 'config.json')
    source = fields.get('module_input_name', 'sentence_embedding')
    target = fields.get('module_output_name') or source
    name = str(fields.get('activation_function', 'Tanh')).rpartition('.')[2]
    if name not in _ACTIVATIONS or (source, target) != ('sentence_embedding',) * 2:
        raise InputError(
            f'the dense layer in {folder!r} has the activation {name}, from {source} to {target}; '
            f'supported are {", ".join(_ACTIVATIONS)}, of sentence_embedding'
        )
    path = weights_in_folder(folder) or os.path.join(folder, 'model.safetensors')
    tensors, _ = read_tensors(path)
    with reporting(
        f'{path!r} is not a dense layer', error_class=CheckpointError, errors=LookupError
    ):
        weight = tensors['linear.weight'].astype(np.float32)
        bias = tensors.get('linear.bias', np.zeros(weight.shape[0])).astype(np.float32)
    activate = _ACTIVATIONS[name]
    return lambda vector: activate(weight @ vector + bias)


def _settings(folder, transformer):
    """Return how sentences are prepared for the first part, in the folder `transformer`."""
    fields = {}
    for name in SENTENCE_CONFIGS:
        fields = fields or read_tokenizer_config(transformer, name)
    length = fields.get('max_seq_length')
    if length is None:
        length = read_tokenizer_config(transformer).get('model_max_length')
    model = read_tokenizer_config(folder, 'config_sentence_transformers.json')
    prompts, default = model.get('prompts') or {}, model.get('default_prompt_name')
    if not isinstance(prompts, dict) or not all(
        isinstance(text, (str, type(None))) for text in (*prompts.values(), default)
    ):
        raise InputError(f'the prompts in {folder!r} are not texts with names: {prompts!r:.200}')
    is_number = isinstance(length, (int, float)) and -math.inf < length < math.inf
    return {
        'max_length': int(length) if is_number else None,
        'lowers': bool(fields.get('do_lower_case')),
        'prompts': prompts,
        'default_prompt': default,
    }


def copy_sentence_modules(files, folder):
    """Copy the modules of a model's `Files` behind a transformer in another folder.

    Returns the paths of the files.
    """
    source, own = files.modules, modules_of(files)
    names = ['config_sentence_transformers.json']
    content = read_json(os.path.join(source, MODULES_NAME))
    for module in content[1:]:
        paths = glob.glob(os.path.join(glob.escape(source), module['path'], '*'))
        names += [os.path.relpath(path, source) for path in paths]
    names = [name for name in names if os.path.isfile(os.path.join(source, name))]
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))
    content[0]['path'] = ''
    sentences = {'max_seq_length': own.max_length, 'do_lower_case': own.lowers}
    write_json(os.path.join(folder, SENTENCE_CONFIGS[0]), sentences)
    write_json(os.path.join(folder, MODULES_NAME), content)
    return [os.path.join(folder, name) for name in (*names, SENTENCE_CONFIGS[0], MODULES_NAME)]


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
        MODULES_NAME: modules,  # last: it makes the folder a model of sentence-transformers
    }
    for path in paths:
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    with kept_sums(folder, begin=True) as written:
        if dense is not None:
            sizes = {'in_features': units, 'out_features': len(dense[1]), 'bias': True}
            identity = 'torch.nn.modules.linear.Identity'
            written += [os.path.join(folder, paths[-1], 'config.json')]
            write_json(written[-1], {**sizes, 'activation_function': identity})
            written += [os.path.join(folder, paths[-1], 'model.safetensors')]
            tensors = dict(zip(('linear.weight', 'linear.bias'), dense))
            with atomic_write(written[-1], mode='wb') as file:
                file.write(safetensors.numpy.save(tensors))
        for name, content in contents.items():
            written.append(os.path.join(folder, name))
            write_json(written[-1], content)
