"""Folders of all families' small models, as the originals write them: without ``model_type``."""

import json
import shutil

import tiny
import variant_models

import bert
import transfo_xl
from model_zoo.opening import open_model

#: as in pytorch-pretrained-bert 0.6.2
GPT2_FIELDS = (
    'vocab_size',
    'n_positions',
    'n_ctx',
    'n_embd',
    'n_layer',
    'n_head',
    'layer_norm_epsilon',
    'initializer_range',
)


def write_family(family, folder, format='native'):
    """Save a model of a family; returns the block and its tokenizer."""
    words, heads = ['<unk>', 'l', 'o', 'w', 'lo', 'low'], {'scale': 0.2}
    ends = [word + '</w>' for word in words[1:]]
    if family == 'bert':
        model, tokenizer = tiny.save_bert(folder, words, bert.BertForPreTraining), None
    elif family == 'gpt':
        model, tokenizer = tiny.save_gpt(folder, words + ends, ['l o', 'lo w</w>'], **heads), None
    elif family == 'gpt2':
        model, tokenizer = tiny.save_gpt2(folder, **heads), None
    elif family == 'transfo_xl':
        tokenizer = transfo_xl.TransfoXLTokenizer(special=['<unk>', '<eos>'])
        tokenizer.count_sents([words[1:]])
        tokenizer.build_vocab()
        config = tiny.transfo_xl_config(len(tokenizer))
        model = tiny.initialized(transfo_xl.TransfoXLLMHeadModel(config))
    else:
        model, tokenizer = variant_models.MAKERS[family](folder)
        tiny.initialized(model)
    tokenizer = tokenizer or open_model(folder, family=family).tokenizer
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(str(folder), tokenizer, format=format)
    path = folder / 'config.json'
    if path.exists():
        fields = json.loads(path.read_text())
        for name in ('model_type', 'architectures'):
            fields.pop(name, None)
        if family == 'gpt2':
            fields = {name: fields[name] for name in fields if name in GPT2_FIELDS}
        path.write_text(json.dumps(fields))
    return model, tokenizer
