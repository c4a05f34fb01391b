"""Write what blocks and tokenizers of version 0.1 compute: blocks/ and tokenizers.json."""

import json

import mxnet as mx
import numpy as np

import bert
import gpt
import gpt2
import transfo_xl
from export import export_block
from model_zoo import get_model
from model_zoo.generation import generate

#: class -> folder of the model; all are opened by ``from_pretrained``
FOLDERS = {
    'bert:BertForSequenceClassification': 'runs/finetune_classifier/end/best_model',
    'bert:BertModel': 'runs/finetune_classifier/end/best_model',
    'bert:BertForQuestionAnswering': 'runs/finetune_squad/end/best_model',
    'bert:BertForMultipleChoice': 'runs/finetune_swag/end/best_model',
    'bert:BertForTokenClassification': 'runs/finetune_tagging/end/best_model',
    'bert:BertForPreTraining': 'runs/run_pretraining/end/model',
    'bert:BertForMaskedLM': 'runs/run_pretraining/end/model',
    'gpt:OpenAIGPTLMHeadModel': 'runs/train_lm_gpt/end/best_model',
    'gpt:OpenAIGPTDoubleHeadsModel': 'runs/finetune_gpt/end/best_model',
    'gpt2:GPT2LMHeadModel': 'runs/train_lm_gpt2/end/best_model',
    'gpt2:GPT2Model': 'runs/train_lm_gpt2/end/best_model',
    'transfo_xl:TransfoXLLMHeadModel': 'runs/train_lm_transfo_xl/end/best_model',
    'transfo_xl:TransfoXLModel': 'runs/train_lm_transfo_xl/end/best_model',
}
#: the same models in other formats
CONVERTED = {
    'bert:BertForSequenceClassification': 'runs/convert_huggingface/end',
    'gpt2:GPT2LMHeadModel': 'runs/convert_gpt2/end',
    'transfo_xl:TransfoXLLMHeadModel': 'runs/convert_transfo_xl/end',
}
TOKENIZERS = {
    'bert:BertTokenizer': 'runs/finetune_classifier/end/best_model',
    'gpt:OpenAIGPTTokenizer': 'runs/train_lm_gpt/end/best_model',
    'gpt2:GPT2Tokenizer': 'runs/train_lm_gpt2/end/best_model',
    'transfo_xl:TransfoXLTokenizer': 'runs/train_lm_transfo_xl/end/best_model',
}
PACKAGES = {'bert': bert, 'gpt': gpt, 'gpt2': gpt2, 'transfo_xl': transfo_xl}
TEXTS = ['the old lobster', 'The blue, sea?', 'seas', '', 'red claw  eats 1 house']
ZOO = {
    'num_layers': 2, 'units': 8, 'hidden_size': 16, 'num_heads': 2, 'max_length': 12,
}  # fmt: skip


def load(path):
    package, name = path.split(':')
    return getattr(PACKAGES[package], name)


def inputs_of(name, block):
    """Words, and what else the block takes."""
    random = np.random.RandomState(3)
    shape = (2, 3, 7) if 'MultipleChoice' in name or 'DoubleHeads' in name else (2, 7)
    words = random.randint(0, block.config.vocab_size, shape)
    lengths = random.randint(3, 8, shape[:-1])
    if name.startswith('bert'):
        inputs = {'words': words, 'token_types': words % 2, 'valid_length': lengths}
        if name.endswith(('PreTraining', 'MaskedLM')):
            inputs['masked_positions'] = np.array([[1, 2], [0, 2]])
    elif name.startswith('transfo_xl'):
        inputs = {'words': words}
    elif 'DoubleHeads' in name:
        inputs = {'words': words, 'mc_token_ids': lengths - 1}
    else:
        inputs = {'words': words, 'valid_length': lengths}
    return {key: value.astype('int32') for key, value in inputs.items()}


def flatten(outputs):
    if isinstance(outputs, (list, tuple)):
        return [array for each in outputs for array in flatten(each)]
    return [] if outputs is None else [outputs.asnumpy()]


def call(block, inputs):
    return flatten(block(**{name: mx.nd.array(a, dtype='int32') for name, a in inputs.items()}))


def save(path, inputs, outputs):
    arrays = {f'in_{name}': array for name, array in inputs.items()}
    arrays.update((f'out_{number}', array) for number, array in enumerate(outputs))
    np.savez_compressed(path, **arrays)


def record_all(folder, runs):
    """Write into `folder`; the current one has runs/."""
    folder.mkdir()
    for path, source in FOLDERS.items():
        block = load(path).from_pretrained(source)
        inputs = inputs_of(path, block)
        save(folder / f'{path.replace(":", ".")}.npz', inputs, call(block, inputs))
    record_zoo(folder / 'zoo')
    record_exports(folder / 'exports')
    tokens = {path: record_tokens(load(path), source) for path, source in TOKENIZERS.items()}
    described = {
        'folders': FOLDERS,
        'converted': CONVERTED,
        'tokenizers': TOKENIZERS,
        'zoo': ZOO,
        'encoded': tokens,
        'generated': record_generation(),
    }
    text = json.dumps(described, indent=1, ensure_ascii=False)
    (folder / 'blocks.json').write_text(text + '\n', encoding='utf-8')


def record_zoo(folder):
    """A block of GluonNLP's interface, and its parameters by `save_parameters`."""
    folder.mkdir()
    vocab = bert.BertTokenizer('data/vocab.txt').vocab
    mx.random.seed(5)
    block, _ = get_model(
        'bert_12_768_12', vocab=vocab, pretrained=False, hparam_allow_override=True, **ZOO
    )
    block.initialize(mx.init.Normal(0.3))
    inputs = {
        'words': np.array([[2, 9, 14, 3], [2, 40, 3, 0]]),
        'token_types': np.zeros((2, 4)),
        'valid_length': np.array([4, 3]),
        'masked_positions': np.array([[1], [1]]),
    }
    inputs = {name: array.astype('int32') for name, array in inputs.items()}
    outputs = flatten(block(*(mx.nd.array(array, dtype='int32') for array in inputs.values())))
    block.save_parameters(str(folder / 'bert.params'))
    save(folder / 'bert.npz', inputs, outputs)


def record_exports(folder):
    """The graph of a decoder; that of a classifier is among the runs."""
    folder.mkdir()
    path = 'gpt2:GPT2LMHeadModel'
    block = load(path).from_pretrained(FOLDERS[path])
    files = export_block(block, str(folder), 'gpt2')
    inputs = inputs_of(path, block)
    net = mx.gluon.SymbolBlock.imports(files[0], ['data0', 'data1'], files[1])
    outputs = flatten(net(*(mx.nd.array(array) for array in inputs.values())))
    save(folder / 'gpt2.npz', inputs, outputs)


def record_tokens(tokenizer_class, source):
    tokenizer = tokenizer_class.from_pretrained(source)
    return [record_text(tokenizer, text) for text in TEXTS]


def record_text(tokenizer, text):
    tokens = tokenizer.tokenize(text)
    ids = [int(each) for each in tokenizer.convert_tokens_to_ids(tokens)]
    encoded = tokenizer.encode(text)
    found = {'text': text, 'tokens': tokens, 'ids': ids}
    found['tokens_of_ids'] = tokenizer.convert_ids_to_tokens(ids)
    if hasattr(encoded, 'input_ids'):
        found['encoded'] = {
            'input_ids': np.asarray(encoded.input_ids).tolist(),
            'token_types': np.asarray(encoded.token_types).tolist(),
            'tokens': list(encoded.tokens),
            'offsets': [list(each) for each in encoded.offsets],
        }
    else:
        found['encoded'] = np.asarray(encoded).tolist()
    if hasattr(tokenizer, 'decode'):
        found['decoded'] = tokenizer.decode(ids)
    return found


def record_generation():
    """Tokens and log-probabilities of greedy and beam search."""
    found = {}
    for path in ('gpt2:GPT2LMHeadModel', 'transfo_xl:TransfoXLLMHeadModel'):
        block = load(path).from_pretrained(FOLDERS[path])
        for name, options in (('greedy', {}), ('beam', {'num_beams': 3})):
            samples = generate(block, [[3, 4, 5], [6]], 5, **options)
            found[f'{path} {name}'] = [
                [[list(map(int, each.tokens)), float(each.log_prob)] for each in of_prompt]
                for of_prompt in samples
            ]
    return found
