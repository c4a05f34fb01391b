"""GluonNLP's vocabularies, and their files.

BERT's have one token per line, whose number is the id. GluonNLP's
:class:`~gluonnlp.vocab.BERTVocab` puts the special tokens first by default, so a ``vocab.txt`` read
through it would change its ids; :func:`load_vocab` keeps the file's order.
"""

import io
import logging
import os

from ..errors import InputError
from ..util.files import atomic_write, file_in
from ..util.reading import read_text

__all__ = ['ROLES', 'find_roles', 'load_vocab', 'make_vocab', 'save_vocab']


_log = logging.getLogger(__name__)

#: BERT's special tokens
SPECIAL_TOKENS = ('[UNK]', '[SEP]', '[PAD]', '[CLS]', '[MASK]')
#: name of the file of a vocabulary of word pieces
VOCAB_NAME = 'vocab.txt'

#: role of a special token -> the attribute of GluonNLP's vocabularies that names it
ROLES = {'unk': 'unknown_token', 'pad': 'padding_token'}
ROLES.update((role, f'{role}_token') for role in ('mask', 'cls', 'sep', 'bos', 'eos'))

#: beginning of the names of ids between others that no token has
NO_TOKEN = '[no token '

# roles of BERT's special tokens, and the roles that a vocabulary may lack
_BERT_ROLES = ('unk', 'sep', 'pad', 'cls', 'mask')
_OPTIONAL = {'pad', 'mask'}

# usual tokens of a role
_NAMES = {
    'unk': ('<unk>', '<UNK>', '[UNK]'),
    'pad': ('[PAD]', '<pad>'),
    'mask': ('[MASK]', '<mask>'),
    'cls': ('[CLS]', '<cls>'),
    'sep': ('[SEP]', '<sep>'),
    'bos': ('<bos>', '<|endoftext|>', '<S>', '<s>'),
    'eos': ('<eos>', '<|endoftext|>', '<S>', '</s>'),
}


def load_vocab(source, roles=None):
    """Make a vocabulary from a file or a list; the ids are the tokens' positions.

    White space around a token is stripped, as in BERT's original ``tokenization.py``. If nothing is
    left, or an earlier token (the Chinese vocabulary has U+2028), the line stays as it is, so that
    no id moves. A byte-order mark and blank lines at the end are dropped.

    As in the original, two things only log a warning: a file without [PAD] or [MASK], whose
    vocabulary then lacks the role, and a token on several lines, whose id is the last line.

    Parameters
    ----------
    source : str, os.PathLike or iterable of str
        Path of a ``vocab.txt``, or the tokens themselves in the order of their ids.
    roles : dict of str to str, optional
        Role -> token, of the special tokens whose names aren't BERT's.

    Raises
    ------
    InputError
        If the file can't be read, isn't UTF-8 or is empty; if a token is blank or not a string; if
        [UNK], [SEP] or [CLS] is missing.
    """
    from gluonnlp.data import count_tokens
    from gluonnlp.vocab import BERTVocab

    if isinstance(source, (str, os.PathLike)):
        origin = f'vocabulary file {os.fspath(source)!r}'
        tokens, seen = [], set()
        # StringIO ends lines at \n, \r\n and \r only; str.splitlines would also do so at U+2028
        for line in io.StringIO(read_text(source).rstrip('\r\n'), newline=None):
            line = line.rstrip('\n')
            token = line.strip()
            tokens.append(token if token and token not in seen else line)
            seen.add(tokens[-1])
    else:
        origin = 'the list of tokens'
        tokens = list(source)
    ids, shadowed = {}, {}  # as in BERT's original, the last line of a token counts
    for position, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise InputError(f'{origin}: line {position + 1} is {token!r}, and must be a token')
        if token in ids:
            shadowed[ids[token]] = token
        ids[token] = position
    if shadowed:
        position, token = next(iter(shadowed.items()))
        lines = position + 1, ids[token] + 1
        problem = '%s: %r is on lines %d and %d, and the last one is its id (%d such tokens)'
        _log.warning(problem, origin, token, *lines, len(shadowed))
    named = dict(zip(_BERT_ROLES, SPECIAL_TOKENS))
    named.update((role, token) for role, token in (roles or {}).items() if token in ids)
    missing = {role: named[role] for role in _BERT_ROLES if named[role] not in ids}
    if {*missing} - _OPTIONAL:
        raise InputError(
            f'{origin} has {len(tokens)} tokens but not {", ".join(missing.values())}; '
            "is it the vocab.txt of a BERT model? Add the missing tokens to it, at the model's ids"
        )
    if missing:
        _log.warning('%s has no %s; is it whole?', origin, ' and no '.join(missing.values()))
    # GluonNLP's vocabularies know no token twice: while one is made, earlier lines have other names
    held = {position: f'{token} on line {position + 1}' for position, token in shadowed.items()}
    ids.update((name, position) for position, name in held.items())
    named = {ROLES[r]: None if r in missing else token for r, token in named.items()}
    vocab = BERTVocab(counter=count_tokens(list(ids)), token_to_idx=ids, **named)
    for position, name in held.items():
        vocab.idx_to_token[position] = shadowed[position]
        del vocab.token_to_idx[name]
    return vocab


def save_vocab(vocab, path):
    """Write the tokens in the order of their ids to a file, or ``vocab.txt`` in a folder."""
    path = file_in(path, VOCAB_NAME)
    seen = set()
    for token in vocab.idx_to_token:
        bare = token.strip()  # which `load_vocab` takes, unless it is empty or an earlier token
        is_read = bare in ('', token) or bare in seen
        if not token or {'\n', '\r'}.intersection(token) or not is_read:
            raise InputError(f'cannot write {path!r}: token {token!r} does not fit on a line')
        seen.add(token)
    with atomic_write(path) as file:
        file.writelines(f'{token}\n' for token in vocab.idx_to_token)
    return path


def find_roles(tokens, first=()):
    """Return the special tokens among `tokens`, by role; names in `first` go before other names."""
    roles = {}
    for role, names in _NAMES.items():
        present = [name for name in names if name in tokens]
        if present:
            roles[role] = min(present, key=lambda name: name not in first)
    return roles


def check_tokens(token_to_idx, name='the vocabulary'):
    """Raise InputError if a token is no Unicode text, or an id is far above their number."""
    largest, count = max(token_to_idx.values(), default=0), len(token_to_idx)
    if largest > 4 * count + 2**16:  # a vocabulary has a row for each number up to the largest
        raise InputError(f'{name} has the id {largest}, but {count} tokens: is it damaged?')
    try:
        ''.join(token_to_idx).encode()
    except UnicodeEncodeError as error:
        problem = f'the lone surrogate {error.object[error.start]!r} in a token'
        raise InputError(f'{name} has {problem}: is it damaged?') from None


def make_vocab(token_to_idx, roles=None):
    """Make a vocabulary with the given ids, for models other than BERT.

    Without an unknown token, looking up a missing token raises KeyError.

    Parameters
    ----------
    token_to_idx : dict of str to int
        Ids from 0 on. Missing numbers get a token ``[no token N]``, since GluonNLP's vocabularies
        have no gaps.
    roles : dict of str to str, optional
        The special tokens, by :data:`ROLES`; by default what :func:`find_roles` finds.
    """
    from gluonnlp import Vocab
    from gluonnlp.data import count_tokens

    check_tokens(token_to_idx)
    ids = {*token_to_idx.values()}
    missing = {*range(max(ids, default=-1) + 1)} - ids
    if missing:
        token_to_idx = {**token_to_idx, **{f'{NO_TOKEN}{index}]': index for index in missing}}
        token_to_idx = dict(sorted(token_to_idx.items(), key=lambda item: item[1]))
    if roles is None:
        roles = find_roles(token_to_idx)
    # without a role's name GluonNLP takes its own default; an unknown token with another role, too,
    # it would add twice
    named = {ROLES[role]: roles.get(role) for role in {*roles, 'unk', 'pad', 'bos', 'eos'}}
    unknown = named.pop(ROLES['unk'])
    shared = [name for name, token in named.items() if unknown is not None and token == unknown]
    named.update(dict.fromkeys(shared))
    named.update(token_to_idx=token_to_idx, unknown_token=unknown)
    vocab = Vocab(count_tokens(list(token_to_idx)), **named)
    for name in shared:
        setattr(vocab, name, unknown)
    return vocab
