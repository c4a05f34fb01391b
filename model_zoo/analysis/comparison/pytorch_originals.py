"""Models of transformers and pytorch-pretrained-bert, run on a comparison's inputs."""

import contextlib
import sys

from ...checkpoint import read_tensors
from ...errors import InputError, MissingExtraError
from ...pretrained import files_in_folder

__all__ = ['run_pytorch', 'run_variant']


def run_pytorch(software, family, checkpoint, config, inputs, has_span):
    """The outputs of transformers or pytorch-pretrained-bert.

    Parameters
    ----------
    software, family, checkpoint, inputs
        See `run_theirs`.
    config : Config
        Of our block.
    has_span : bool
        Whether the checkpoint has BERT's last layer for answers.

    Returns
    -------
    dict of str to numpy.ndarray
    """
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
        torch.tensor(each).long() for each in (inputs.words, inputs.token_types, inputs.mask)
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
    if block.takes_token_types:
        arrays['token_type_ids'] = inputs.token_types
    with torch.no_grad():
        tensors = {key: torch.tensor(array).long() for key, array in arrays.items()}
        outputs = dict(model(**tensors, output_hidden_states=True))
    layers = outputs.pop('hidden_states')[1:]
    outputs.pop('last_hidden_state', None)
    named = {f'layer {i}': layer for i, layer in enumerate(layers, 1)}
    named.update((f'output {i}', each) for i, each in enumerate(outputs.values(), 1))
    return {key: each.numpy() for key, each in named.items()}


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
    if weights.endswith(('.safetensors', '.bin', '.index.json')):
        if software == 'transformers':
            return model_class.from_pretrained(checkpoint, config=their_config).eval()
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
    if weights.endswith('params_shapes.json'):
        load, base, path = module.load_tf_weights_in_openai_gpt, model, checkpoint
    elif weights.endswith('.index'):
        load = getattr(module, f'load_tf_weights_in_{family}')
        base, path = model, weights[: -len('.index')]
    else:
        raise InputError(f'{weights!r} is not a file that {software} reads')
    if family != 'bert':
        base = model.transformer
    # their converters write on standard output, and end at names that the model lacks
    with contextlib.redirect_stdout(sys.stderr):
        try:
            load(base, their_config, path) if software == 'transformers' else load(base, path)
        except (AttributeError, AssertionError, OSError) as error:
            raise InputError(f'{software} cannot read {path!r}: {error}') from error
    return model.eval()
