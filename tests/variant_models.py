"""Small models of the families like BERT, not initialized, their tokenizers, and folders of all."""

import json
import shutil
import string

import tiny
from tiny import learn_pieces, write_pairs, write_words

import bert
import transfo_xl
from model_zoo.opening import open_model
from model_zoo.tokenization.bpe import bytes_to_unicode

SIZES = {'hidden_size': 32, 'num_hidden_layers': 1, 'max_position_embeddings': 66}
NARROW = {**SIZES, 'embedding_size': 16}
FAIRSEQ = ['<s>', '<pad>', '</s>', '<unk>']
LETTERS = [*string.ascii_lowercase, *string.digits, *string.punctuation]
FURTHER = [f'##{letter}' for letter in string.ascii_lowercase]
#: from which pieces are learned
LINES = ['the cat sat on a red mat', *string.ascii_lowercase, *string.punctuation, '0 1'] * 3
BYTES = sorted(bytes_to_unicode().values())
#: small letters behind a space
MERGES = [('\u0120', letter) for letter in string.ascii_lowercase]
SPACED = list(map(''.join, MERGES))
#: options of the pieces of ALBERT, and of DeBERTa
ALBERT = {'control_symbols': ['[CLS]', '[SEP]', '[MASK]']}
ALBERT.update(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1)
ROLES = 'pad', 'bos', 'eos', 'unk'
DEBERTA = dict(zip([f'{role}_id' for role in ROLES], range(4)))
TOKENS = '[PAD]', '[CLS]', '[SEP]', '[UNK]'
DEBERTA.update(zip([f'{role}_piece' for role in ROLES], TOKENS))


def _word_pieces(folder):
    return bert.BertTokenizer(write_words(folder, [*LETTERS, *FURTHER]))


def _pairs(tokenizer_class, *tokens):
    merges = list(map(' '.join, MERGES))
    return lambda folder: tokenizer_class(*write_pairs(folder, tokens, merges))


def _pieces(tokenizer_class, name, **options):
    options['hard_vocab_limit'] = False
    return lambda folder: tokenizer_class(learn_pieces(folder / name, LINES, 90, **options))


def _mpnet(folder):
    tokens = [*FAIRSEQ, *tiny.SPECIAL, *LETTERS, *FURTHER, '<mask>']
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n', 'utf-8')
    return bert.MPNetTokenizer(folder / 'vocab.txt')


def _maker(name, make_tokenizer, **sizes):
    """A function of a folder for the vocabulary -> (model, tokenizer)."""

    def make(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer = make_tokenizer(folder)
        kind = getattr(bert, f'{name}Config')
        config = tiny.make_config(kind, len(tokenizer), **(sizes or SIZES))
        return getattr(bert, f'{name}Model')(config, use_decoder=True), tokenizer

    return make


#: name of a family -> its maker
MAKERS = {
    'roberta': _maker(
        'Roberta', _pairs(bert.RobertaTokenizer, *FAIRSEQ, *BYTES, *SPACED, '<mask>')
    ),
    'distilbert': _maker(
        'DistilBert', _word_pieces, dim=32, n_layers=1, max_position_embeddings=64
    ),
    'electra': _maker('Electra', _word_pieces, **NARROW),
    'xlmr': _maker('XLMRoberta', _pieces(bert.XLMRobertaTokenizer, 'sentencepiece.bpe.model')),
    'mpnet': _maker('MPNet', _mpnet),
    'albert': _maker('Albert', _pieces(bert.AlbertTokenizer, 'spiece.model', **ALBERT), **NARROW),
    'deberta': _maker('DebertaV2', _pieces(bert.DebertaV2Tokenizer, 'spm.model', **DEBERTA)),
    'modernbert': _maker(
        'ModernBert',
        _pairs(bert.ModernBertTokenizer, *BYTES, *SPACED, '[UNK]', *TOKENS[1:3], '[PAD]', '[MASK]'),
    ),
}

#: as in pytorch-pretrained-bert 0.6.2
GPT2_FIELDS = (
    'vocab_size n_positions n_ctx n_embd n_layer n_head layer_norm_epsilon initializer_range'
).split()


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
        model = tiny.make(transfo_xl.TransfoXLLMHeadModel, len(tokenizer), 0.5)
    else:
        model, tokenizer = MAKERS[family](folder)
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
