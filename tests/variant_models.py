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
SPACE = '\u0120'
DEBERTA_TOKENS = '[PAD]', '[CLS]', '[SEP]', '[UNK]'


def make_roberta(folder):
    """Make a RoBERTa whose vocabulary has bytes, and small letters behind a space."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(bytes_to_unicode().values())
    merges = [(SPACE, letter) for letter in string.ascii_lowercase]
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *letters, *map(''.join, merges), '<mask>']
    write_pairs(folder, tokens, map(' '.join, merges))
    tokenizer = bert.RobertaTokenizer.from_pretrained(str(folder))
    config = tiny.make_config(bert.RobertaConfig, len(tokens), **SIZES)
    return bert.RobertaModel(config, use_decoder=True), tokenizer


def _word_pieces(folder):
    """Return a tokenizer of letters and their continuations."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = string.ascii_lowercase + string.digits + string.punctuation
    further = [f'##{letter}' for letter in string.ascii_lowercase]
    return bert.BertTokenizer(write_words(folder, [*letters, *further]))


def make_distilbert(folder):
    tokenizer = _word_pieces(folder)
    sizes = {'dim': 32, 'n_layers': 1, 'max_position_embeddings': 64}
    config = tiny.make_config(bert.DistilBertConfig, len(tokenizer), **sizes)
    return bert.DistilBertModel(config, use_decoder=True), tokenizer


def make_electra(folder):
    tokenizer = _word_pieces(folder)
    config = tiny.make_config(bert.ElectraConfig, len(tokenizer), **SIZES, embedding_size=16)
    return bert.ElectraModel(config, use_decoder=True), tokenizer


def make_xlmr(folder):
    """Pieces learned from letters and a few words."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ['the cat sat on a red mat', *string.ascii_lowercase, *string.punctuation, '0 1']
    path = folder / 'sentencepiece.bpe.model'
    tokenizer = bert.XLMRobertaTokenizer(learn_pieces(path, lines * 3, 90, hard_vocab_limit=False))
    config = tiny.make_config(bert.XLMRobertaConfig, len(tokenizer), **SIZES)
    return bert.XLMRobertaModel(config, use_decoder=True), tokenizer


def make_mpnet(folder):
    folder.mkdir(parents=True, exist_ok=True)
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    further = [f'##{letter}' for letter in string.ascii_lowercase]
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *tiny.SPECIAL, *letters, *further, '<mask>']
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n', 'utf-8')
    config = tiny.make_config(bert.MPNetConfig, len(tokens), **SIZES)
    return bert.MPNetModel(config, use_decoder=True), bert.MPNetTokenizer(folder / 'vocab.txt')


def make_albert(folder):
    """Pieces learned from letters and a few words."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ['the cat sat on a red mat', *string.ascii_lowercase, *string.punctuation, '0 1']
    path, special = folder / 'spiece.model', {'control_symbols': ['[CLS]', '[SEP]', '[MASK]']}
    special.update(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, hard_vocab_limit=False)
    tokenizer = bert.AlbertTokenizer(learn_pieces(path, lines * 3, 90, **special))
    config = tiny.make_config(bert.AlbertConfig, len(tokenizer), **SIZES, embedding_size=16)
    return bert.AlbertModel(config, use_decoder=True), tokenizer


def make_deberta(folder):
    """Pieces learned from letters and a few words, with BERT's special tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ['the cat sat on a red mat', *string.ascii_lowercase, *string.punctuation, '0 1']
    ids = dict(zip(('pad_id', 'bos_id', 'eos_id', 'unk_id'), range(4)))
    pieces = dict(zip(('pad_piece', 'bos_piece', 'eos_piece', 'unk_piece'), DEBERTA_TOKENS))
    options = {**ids, **pieces, 'hard_vocab_limit': False}
    path = learn_pieces(folder / 'spm.model', lines * 3, 90, **options)
    tokenizer = bert.DebertaV2Tokenizer(path)
    config = tiny.make_config(bert.DebertaV2Config, len(tokenizer), **SIZES)
    return bert.DebertaV2Model(config, use_decoder=True), tokenizer


def make_modernbert(folder):
    """Bytes, and small letters behind a space."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(bytes_to_unicode().values())
    merges = [(SPACE, letter) for letter in string.ascii_lowercase]
    tokens = [*letters, *map(''.join, merges), '[UNK]', '[CLS]', '[SEP]', '[PAD]', '[MASK]']
    tokenizer = bert.ModernBertTokenizer(*write_pairs(folder, tokens, map(' '.join, merges)))
    config = tiny.make_config(bert.ModernBertConfig, len(tokens), **SIZES)
    return bert.ModernBertModel(config, use_decoder=True), tokenizer


#: name of a family -> function of a folder for the vocabulary -> (model, tokenizer)
MAKERS = {
    'roberta': make_roberta,
    'distilbert': make_distilbert,
    'electra': make_electra,
    'xlmr': make_xlmr,
    'mpnet': make_mpnet,
    'albert': make_albert,
    'deberta': make_deberta,
    'modernbert': make_modernbert,
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
