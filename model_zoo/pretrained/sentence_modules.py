"""From token vectors to a sentence vector, as a model of sentence-transformers does it."""

import dataclasses
import functools
import glob
import math
import os
import shutil

import numpy as np

from ..checkpoint.readers import kept_sums, read_tensors, weights_in_folder
from ..checkpoint.tensor_files import write_safetensors
from ..errors import CheckpointError, InputError, UnknownNameError, reporting
from ..util.arrays import pool
from ..util.files import write_json
from ..util.reading import check_json, read_json
from .files import MODULES_NAME, SENTENCE_CONFIGS, TOKENIZER_CONFIG, modules_in_folder

__all__ = ['SentenceModules', 'modules_of', 'write_sentence_modules']

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


@dataclasses.dataclass(frozen=True)
class SentenceModules:
    """The modules after the transformer, and how a sentence is prepared.

    Parameters
    ----------
    steps : sequence of callable
        ``step(vector) -> vector``, one after the other.
    prompts : dict of str to str
        Name -> the text that precedes a sentence.
    """

    modes: tuple = ('mean',)
    steps: tuple = ()
    max_length: int | None = None
    lowers: bool = False
    prompts: dict = dataclasses.field(default_factory=dict)
    default_prompt: str | None = None
    counts_prompt: bool = True

    def prompt(self, name=None):
        """Return the text of a prompt, by default of `default_prompt`; empty if there is none."""
        name = self.default_prompt if name is None else name
        if name is not None:
            UnknownNameError.check('prompt', name, self.prompts)
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
            raise InputError('several poolings, or a dense layer, cannot be part of a block')
        return self.modes[0]

    def units(self, units):
        """Return the length of a sentence's vector, given the length of a token's."""
        with reporting('the parts of the model do not fit together', errors=ValueError):
            return len(self.vector(np.zeros((1, units), np.float32)))


def normalized(vector):
    """Return a vector scaled to Euclidean length 1."""
    return vector / max(np.linalg.norm(vector), _TINY)


#: data set of the catalogue, whose weights also come without the files that say the rest -> modules
KNOWN = {
    'all_minilm_l6_v2': SentenceModules(steps=(normalized,), max_length=256),
    'all_mpnet_base_v2': SentenceModules(steps=(normalized,), max_length=384),
}


def modules_of(files):
    """Return the modules of a model's `Files`; None if it isn't one of sentence-transformers."""
    if files.modules is None or files.modules in KNOWN:
        return KNOWN.get(files.modules)
    folder = files.modules
    first, *modules = modules_in_folder(folder)
    options, steps = {}, []
    for module in modules:
        path = os.path.join(folder, module.path)
        if module.kind == 'Pooling' and not options and not steps:
            options = _read_pooling(path)
        elif module.kind == 'Dense' and options:
            steps.append(_read_dense(path))
        elif module.kind == 'Normalize' and options:
            steps.append(normalized)
        elif module.kind != 'Dropout':
            raise InputError(f'the part {module.kind} of {folder!r} is not supported here')
    settings = _settings(folder, os.path.join(folder, first.path))
    return SentenceModules(steps=tuple(steps), **options, **settings)


def _fields_in(folder, name):
    return read_json(os.path.join(folder, name), shape=dict, default={})


def _read_pooling(folder):
    fields = _fields_in(folder, 'config.json')
    modes = fields.get('pooling_mode')
    if modes is None:
        modes = [mode for mode, name in _MODES.items() if fields.get(name)] or ['mean']
    modes = modes if isinstance(modes, list) else [modes]
    for mode in map(str, modes):
        UnknownNameError.check(f'pooling in {folder!r}', mode, _MODES)
    return {'modes': tuple(modes), 'counts_prompt': fields.get('include_prompt', True)}


def _read_dense(folder):
    fields = _fields_in(folder, 'config.json')
    source = fields.get('module_input_name', 'sentence_embedding')
    target = fields.get('module_output_name') or source
    name = str(fields.get('activation_function', 'Tanh')).rpartition('.')[2]
    if name not in _ACTIVATIONS or (source, target) != ('sentence_embedding',) * 2:
        raise InputError(f'the layer in {folder!r}, {name} of {source}, is not supported')
    path = weights_in_folder(folder) or os.path.join(folder, 'model.safetensors')
    tensors, _ = read_tensors(path)
    if 'linear.weight' not in tensors:
        raise CheckpointError(f'{path!r} is not a dense layer')
    weight = tensors['linear.weight'].astype(np.float32)
    bias = tensors.get('linear.bias', np.zeros(weight.shape[0])).astype(np.float32)
    return functools.partial(_dense, weight, bias, name)


def _dense(weight, bias, activation, vector):
    return _ACTIVATIONS[activation](weight @ vector + bias)


def _settings(folder, transformer):
    """Return how sentences are prepared for the first part, in the folder `transformer`."""
    found = (_fields_in(transformer, name) for name in SENTENCE_CONFIGS)
    fields = next(filter(None, found), {})
    length = fields.get('max_seq_length')
    if length is None:
        length = _fields_in(transformer, TOKENIZER_CONFIG).get('model_max_length')
    model = _fields_in(folder, 'config_sentence_transformers.json')
    shape = {'prompts': dict[str, str | None] | None, 'default_prompt_name': str | None}
    with reporting(f'cannot read the prompts in {folder!r}', errors=ValueError):
        check_json(model, shape)
    is_number = isinstance(length, (int, float)) and -math.inf < length < math.inf
    return {
        'max_length': int(length) if is_number else None,
        'lowers': bool(fields.get('do_lower_case')),
        'prompts': model.get('prompts') or {},
        'default_prompt': model.get('default_prompt_name'),
    }


def copy_sentence_modules(files, folder):
    """Copy the modules of a model's `Files` behind a transformer in another folder.

    Returns the paths of the files.
    """
    source, own = files.modules, modules_of(files)
    content = read_json(os.path.join(source, MODULES_NAME))
    sources = [os.path.join(source, 'config_sentence_transformers.json')]
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
            contents[os.path.join(paths[-1], 'config.json')] = {
                'in_features': units,
                'out_features': len(dense[1]),
                'bias': True,
                'activation_function': 'torch.nn.modules.linear.Identity',
            }
            written.append(os.path.join(folder, paths[-1], 'model.safetensors'))
            write_safetensors(written[-1], dict(zip(('linear.weight', 'linear.bias'), dense)))
        contents[MODULES_NAME] = modules  # last: it makes the folder one of sentence-transformers
        for name, content in contents.items():
            written.append(os.path.join(folder, name))
            write_json(written[-1], content)
