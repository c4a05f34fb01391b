"""Folders of small random models, with the tokenizers that people's folders have."""

import json
import string

import tokenizers
from tiny import SPECIAL, initialized, learn_pieces, make_config
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from variant_models import DEBERTA

import bert
import gpt
import gpt2

NAMED = {token[1:-1].lower(): token for token in SPECIAL}
FAIRSEQ = {role: f'<{role}>' for role in ('unk', 'pad', 'mask')}
FAIRSEQ.update(bos='<s>', eos='</s>', cls='<s>', sep='</s>')
LETTERS = [*string.ascii_lowercase, *string.digits, *string.punctuation, '\u00f6', '\u4e2d']
PIECES = [*LETTERS, *(f'##{letter}' for letter in [*string.ascii_lowercase, '\u00f6', '\u4e2d'])]
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
SPACED = [('\u0120', letter) for letter in string.ascii_lowercase]
ROBERTA = ['<s>', '<pad>', '</s>', '<unk>', *BYTES, *map(''.join, SPACED), '<mask>']
LINES = ['the cat sat on a red mat', *string.ascii_letters, *string.punctuation, '0 1', '\u00f6']
ADDED = '<e1>'  # by which people mark an entity


def _write(folder, name, content):
    (folder / name).write_text(json.dumps(content), 'utf-8')


def _roles(tokens):
    return {f'{role}_token': token for role, token in tokens.items()}


def word_pieces(added=(), pieces=PIECES, **options):
    """A tokenizer of BERT's in the library."""
    vocab = {token: number for number, token in enumerate([*SPECIAL, *pieces])}
    rust = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token='[UNK]'))
    rust.normalizer = normalizers.BertNormalizer(**options)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    rust.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]',
        pair='[CLS] $A [SEP] $B:1 [SEP]:1',
        special_tokens=[('[CLS]', 2), ('[SEP]', 3)],
    )
    rust.add_special_tokens(SPECIAL)
    rust.add_tokens(list(added))
    return rust


def _byte_pairs(tokens, added=()):
    rust = tokenizers.Tokenizer(models.BPE({token: n for n, token in enumerate(tokens)}, SPACED))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    rust.add_special_tokens([token for token in tokens if token[0] == '<' and len(token) > 1])
    rust.add_tokens(list(added))
    return rust


def _unigrams():
    pieces = [('<s>', 0.0), ('<pad>', 0.0), ('</s>', 0.0), ('<unk>', 0.0)]
    pieces += [('\u2581', -2.0), *((letter, -3.0) for letter in [*string.ascii_letters, *LETTERS])]
    pieces = [*dict(pieces).items(), ('\u2581the', -2.5), ('<mask>', 0.0)]
    rust = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=3))
    steps = normalizers.Strip(left=False), normalizers.Replace(Regex(' {2,}'), '\u2581')
    rust.normalizer = normalizers.Sequence(list(steps))
    rust.pre_tokenizer = pre_tokenizers.Metaspace()
    rust.decoder = decoders.Metaspace()
    rust.post_processor = processors.TemplateProcessing(
        single='<s> $A </s>',
        pair='<s> $A </s> </s> $B </s>',
        special_tokens=[('<s>', 0), ('</s>', 2)],
    )
    tokens = ['<s>', '<pad>', '</s>', '<unk>']
    rust.add_special_tokens([*tokens, AddedToken('<mask>', lstrip=True)])
    return rust


def _json(folder, rust, named, **fields):
    rust.save(str(folder / 'tokenizer.json'))
    _write(folder, 'tokenizer_config.json', {'backend': 'tokenizers', **_roles(named), **fields})
    return max(rust.get_vocab().values()) + 1


def bert_json(folder):
    return _json(folder, word_pieces(), NAMED, tokenizer_class='BertTokenizer')


def bert_json_added(folder):
    fields = {'do_lower_case': True, 'strip_accents': False, 'tokenizer_class': 'BertTokenizer'}
    return _json(folder, word_pieces([ADDED], strip_accents=False), NAMED, **fields)


def bert_txt(folder, special=SPECIAL, named=NAMED, added=True, **fields):
    """As transformers 4 writes it, without tokenizer.json."""
    tokens = [*special, *PIECES]
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n', 'utf-8')
    fields = {'strip_accents': False, 'tokenize_chinese_chars': False, **fields}
    config = {'do_lower_case': True, 'tokenizer_class': 'BertTokenizer', **fields}
    _write(folder, 'tokenizer_config.json', config)
    _write(folder, 'special_tokens_map.json', _roles(named))
    if added:
        _write(folder, 'added_tokens.json', {ADDED: len(tokens)})
    return len(tokens) + added


def bert_txt_json(folder):
    """With a vocabulary that lacks the added tokens."""
    bert_txt(folder, added=False)
    return bert_json_added(folder)


def bert_renamed(folder):
    special = ['<pad>', '<unk>', '<s>', '</s>', '<mask>']
    return bert_txt(folder, special, FAIRSEQ, added=False, strip_accents=None)


def bert_pieces(folder):
    """As paraphrase-multilingual-MiniLM-L12-v2 has it: XLM-R's tokenizer."""
    learn_pieces(folder / 'sentencepiece.bpe.model', LINES * 3, 110, hard_vocab_limit=False)
    _write(folder, 'tokenizer_config.json', {'tokenizer_class': 'XLMRobertaTokenizer'})
    return len(bert.XLMRobertaTokenizer(folder / 'sentencepiece.bpe.model'))


def bert_pieces_json(folder):
    """Whose ``tokenizer.json`` is right, and has other pieces than the model beside it."""
    learn_pieces(folder / 'sentencepiece.bpe.model', LINES * 3, 110, hard_vocab_limit=False)
    return xlmr_json(folder)


def roberta_json(folder):
    rust = _byte_pairs(ROBERTA, [ADDED])
    rust.post_processor = processors.RobertaProcessing(
        ('</s>', 2), ('<s>', 0), trim_offsets=True, add_prefix_space=False
    )
    return _json(folder, rust, FAIRSEQ, tokenizer_class='RobertaTokenizer')


def _pairs(folder, tokens, named, **fields):
    """As transformers 4 writes them, without tokenizer.json."""
    _write(folder, 'vocab.json', {token: number for number, token in enumerate(tokens)})
    merges = ''.join(f'{first} {second}\n' for first, second in SPACED)
    (folder / 'merges.txt').write_text('#version: 0.2\n' + merges, 'utf-8')
    roles = _roles(named)
    if 'mask' in named:
        roles['mask_token'] = {'content': named['mask'], 'lstrip': True}
    _write(folder, 'special_tokens_map.json', roles)
    _write(folder, 'added_tokens.json', {ADDED: len(tokens)})
    _write(folder, 'tokenizer_config.json', fields)
    return len(tokens) + 1


def roberta_pairs(folder):
    fields = {'tokenizer_class': 'RobertaTokenizer', 'add_prefix_space': True}
    return _pairs(folder, ROBERTA, FAIRSEQ, **fields)


def xlmr_json(folder):
    return _json(folder, _unigrams(), FAIRSEQ, tokenizer_class='XLMRobertaTokenizer')


def deberta_pieces(folder):
    """As the first version's authors have it, without tokenizer.json."""
    learn_pieces(folder / 'spm.model', LINES * 3, 110, hard_vocab_limit=False, **DEBERTA)
    fields = {'do_lower_case': False, 'vocab_type': 'spm', 'tokenizer_class': 'DebertaV2Tokenizer'}
    _write(folder, 'tokenizer_config.json', fields)
    return len(bert.DebertaV2Tokenizer(folder / 'spm.model'))


def modernbert_json(folder):
    tokens = [*BYTES, *map(''.join, SPACED), '[UNK]', '[CLS]', '[SEP]', '[PAD]', '[MASK]']
    rust = _byte_pairs(tokens)
    rust.normalizer = normalizers.NFC()
    rust.add_special_tokens([*tokens[-5:-1], AddedToken('[MASK]', lstrip=True)])
    ends = [(token, tokens.index(token)) for token in ('[CLS]', '[SEP]')]
    rust.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B [SEP]', special_tokens=ends
    )
    rust.add_tokens([ADDED])
    return _json(folder, rust, NAMED, tokenizer_class='PreTrainedTokenizerFast')


def gpt2_json(folder):
    rust = _byte_pairs([*BYTES, *map(''.join, SPACED), '<|endoftext|>'], [ADDED])
    named = dict.fromkeys(('bos', 'eos', 'unk'), '<|endoftext|>')
    return _json(folder, rust, named, tokenizer_class='GPT2Tokenizer')


def gpt2_pairs(folder):
    tokens = [*BYTES, *map(''.join, SPACED), '<|endoftext|>']
    named = {**dict.fromkeys(('bos', 'eos', 'unk'), '<|endoftext|>'), 'pad': ADDED}
    return _pairs(folder, tokens, named, tokenizer_class='GPT2Tokenizer')


#: name -> family's prefix of block names, function of a folder that writes the tokenizer's files
#: and returns the size of the vocabulary
FOLDERS = {
    'bert_json': ('Bert', bert_json),
    'bert_json_added': ('Bert', bert_json_added),
    'bert_txt': ('Bert', bert_txt),
    'bert_txt_json': ('Bert', bert_txt_json),
    'bert_renamed': ('Bert', bert_renamed),
    'bert_pieces': ('Bert', bert_pieces),
    'bert_pieces_json': ('Bert', bert_pieces_json),
    'distilbert_json_added': ('DistilBert', bert_json_added),
    'electra_txt': ('Electra', bert_txt),
    'roberta_json': ('Roberta', roberta_json),
    'roberta_pairs': ('Roberta', roberta_pairs),
    'roberta_txt': ('Roberta', bert_txt),
    'xlmr_json': ('XLMRoberta', xlmr_json),
    'xlmr_pieces': ('XLMRoberta', bert_pieces),
    'deberta_pieces': ('DebertaV2', deberta_pieces),
    'modernbert_json': ('ModernBert', modernbert_json),
    'gpt2_json': ('GPT2', gpt2_json),
    'gpt2_pairs': ('GPT2', gpt2_pairs),
}


def write_tokenizer(folder, kind):
    """Write the tokenizer's files; returns the size of its vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    return FOLDERS[kind][1](folder)


def add_model(folder, kind, vocab_size, head):
    """Save a random model of a head (``'ForMaskedLM'``) beside the tokenizer's files."""
    prefix = FOLDERS[kind][0]
    package = {'GPT2': gpt2, 'OpenAIGPT': gpt}.get(prefix, bert)
    positions = 'n_positions' if prefix == 'GPT2' else 'max_position_embeddings'
    kind = getattr(package, f'{prefix}Config')
    config = make_config(kind, vocab_size, **{positions: 80})
    block = initialized(getattr(package, prefix + head)(config), 0.3)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    block.save_pretrained(str(folder), format='huggingface')
    assert all((folder / name).read_bytes() == content for name, content in before.items())
    return block
