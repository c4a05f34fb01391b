"""Everyone's folders in every task and command: all right, or refused with a clear error."""

import math

import folders
import pytest
from json_files import cases, change_json
from refusals import refuses
from script_runs import load_script, run

import bert
import model_zoo
from bert_embedding import BertEmbedding
from model_zoo.errors import InputError
from model_zoo.opening import open_tokenizer

CLASSES = [('the cat', 'yes'), ('a red mat', 'no')] * 4
PAIRS = [('the cat', 'sat on', 'yes'), ('a red mat', '<e1> x', 'no')] * 4
TAGS = [(['the', 'cat', '<e1>sat'], ['O', 'B-X', 'O']), (['a', 'mat'], ['O', 'B-X'])] * 4
ANSWERS = [('who?', 'the cat sat on a mat.', 'cat', 4), ('on what?', 'on a mat', 'mat', 5)] * 3
CHOICES = [('the cat', ['sat on', 'mat red'], 0), ('a mat', ['is red', 'cat'], 1)] * 4
SCORES = [('the cat', 'a cat', 0.9), ('a mat', 'red', 0.1)] * 4
TEXTS = ['the cat sat on a red mat . ' * 6] * 4


def trained(task, rows, scored=True):
    """A training, and the use of its result."""

    def check(folder, _):
        dev = rows[:4] if scored else None
        result = model_zoo.finetune(str(folder), task, rows, dev, epochs=1, batch_size=4)
        assert not scored or all(map(math.isfinite, result.scores.values()))

    return check


def answers(folder, _):
    reader = model_zoo.pipeline('question-answering', str(folder))
    answer = reader(question='who?', context='the cat sat', top_k=1)
    assert answer['answer'] == 'the cat sat'[answer['start'] : answer['end']] != ''


def tags(folder, _):
    tagger = model_zoo.pipeline('token-classification', str(folder))
    text, found = 'the cat sat', tagger('the cat sat', aggregation_strategy='first')
    assert ' '.join(text[part['start'] : part['end']].strip() for part in found) == text


def classifies(folder, _):
    assert 0 < model_zoo.pipeline('text-classification', str(folder))('the cat')[0]['score'] < 1


def fills(folder, _):
    unmasker = model_zoo.pipeline('fill-mask', str(folder))
    mask = unmasker.tokenizer.mask_token
    ((best, *_),) = unmasker([f'the {mask}sat'])
    # no spaces are put around the mask where they would be tokens
    space = '' if unmasker.tokenizer.finds_marks else ' '
    ids = unmasker.tokenizer.encode(f'the {mask}{space}sat')
    ids[ids.index(unmasker.tokenizer.mask_token_id)] = best['token']
    assert best['sequence'] == unmasker.tokenizer.decode(ids, skip_special_tokens=True)


def embeds(folder, _):
    ((words, vectors),) = BertEmbedding(str(folder))(['the cat sat'])
    assert words == ['the', 'cat', 'sat'] and len(vectors) == 3


def generates(folder, _):
    text = model_zoo.pipeline('text-generation', str(folder))('the cat', max_new_tokens=5)
    assert text[0]['generated_text'].startswith('the cat')


def command(line):
    name, *argv = line.split()

    def check(folder, path):
        text, out = path / 'in.txt', path / 'out'
        text.write_text('the cat sat.\na red mat.\n\nthe cat\nwas red.\n')
        places = {'IN': text, 'OUT': out, 'FOLDER': folder}
        assert run(load_script(name), *(places.get(word, word) for word in argv)) in (0, None)

    return check


EXTRACT = 'extract_features --input_file IN --output_file OUT --layers -1 --model FOLDER'
CREATE = (
    'create_pretraining_data --input_file IN --output_dir OUT --vocab FOLDER '
    '--max_length 32 --masked_lm_prob 0.3 --whole_word_mask --max_predictions_per_seq 5'
)
#: task or command -> head of the model, what is done
ENCODER = {
    'classification': ('ForSequenceClassification', trained('text-classification', CLASSES)),
    'pairs': ('ForSequenceClassification', trained('text-classification', PAIRS)),
    'tagging': ('ForTokenClassification', trained('token-classification', TAGS)),
    'squad': ('ForQuestionAnswering', trained('question-answering', ANSWERS)),
    'choice': ('ForMultipleChoice', trained('multiple-choice', CHOICES)),
    'masked': ('ForMaskedLM', trained('fill-mask', TEXTS, False)),
    'classifies': ('ForSequenceClassification', classifies),
    'tags': ('ForTokenClassification', tags),
    'answers': ('ForQuestionAnswering', answers),
    'fills': ('ForMaskedLM', fills),
    'embeds': ('Model', embeds),
    'extract': ('Model', command(EXTRACT)),
    'create': ('ForMaskedLM', command(CREATE)),
}
ENCODER_OF_BERT = {'similarity': ('Model', trained('sentence-similarity', SCORES))}
DECODER = {
    'language model': ('LMHeadModel', trained('text-generation', TEXTS, False)),
    'generates': ('LMHeadModel', generates),
}
#: with these all is tried, with the others what depends on the tokenizer most
WHOLE = ('bert_json_added', 'roberta_pairs')
TABLE = [
    (kind, task)
    for kind in folders.FOLDERS
    for task in (
        DECODER
        if kind.startswith('gpt')
        else {**ENCODER, **(ENCODER_OF_BERT if kind.startswith('bert') else {})}
        if kind in WHOLE
        else ('pairs', 'tagging', 'answers', 'fills', 'embeds', 'create')
    )
]
#: BERT's next sentences need BERT's pairs
REFUSED = {('bert_pieces', 'create'), ('bert_pieces_json', 'create')}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A function of a kind and a head that gives a folder."""
    base = tmp_path_factory.mktemp('folders')

    def make(kind, head):
        folder = base / kind / head
        if not folder.exists():
            folders.add_model(folder, kind, folders.write_tokenizer(folder, kind), head)
        return folder

    return make


@pytest.mark.parametrize('kind, task', TABLE)
def test_folder_and_task(made, tmp_path, capsys, kind, task):
    head, check = {**ENCODER, **ENCODER_OF_BERT, **DECODER}[task]
    if (kind, task) in REFUSED:
        with pytest.raises(AssertionError):
            check(made(kind, head), tmp_path)
        assert 'Traceback' not in capsys.readouterr().err
    else:
        check(made(kind, head), tmp_path)


#: what transformers gives for this text
TEXT = 'Sch\xf6n \u4e2da <e1>x t'
TOKENS = cases('opening')['TOKENS']


@pytest.mark.parametrize('kind', TOKENS)
def test_tokens_come_back_from_what_is_saved(made, tmp_path, kind):
    head = 'LMHeadModel' if kind.startswith('gpt') else 'Model'
    block, tokenizer, _ = model_zoo.open_model(str(made(kind, head)))
    assert tokenizer.tokenize(TEXT) == TOKENS[kind]
    block.save_pretrained(str(tmp_path), tokenizer)
    again = open_tokenizer(str(tmp_path))
    assert again.encode(TEXT, 'a b') == tokenizer.encode(TEXT, 'a b')
    roles = ('unk', 'pad', 'mask', 'cls', 'sep', 'bos', 'eos')
    for name in (f'{role}_token' for role in roles):
        assert getattr(again, name) == getattr(tokenizer, name)


def opened(folder, kind, **fields):
    """The tokenizer of a folder with other settings."""
    folders.write_tokenizer(folder, kind)
    change_json(folder / 'tokenizer_config.json', **fields)
    change_json(folder / 'config.json', model_type=folders.FOLDERS[kind][0].lower())
    return open_tokenizer(str(folder))


BAD_SETTINGS = cases('opening')['BAD_SETTINGS']


@pytest.mark.parametrize('kind, fields', BAD_SETTINGS)
def test_settings_that_cannot_be_honoured(tmp_path, kind, fields):
    with pytest.raises(InputError):
        opened(tmp_path, kind, **fields)


def test_a_class_that_config_json_names(tmp_path):
    folders.write_tokenizer(tmp_path, 'roberta_txt')
    (tmp_path / 'tokenizer_config.json').unlink()
    change_json(tmp_path / 'config.json', model_type='roberta', tokenizer_class='BertweetTokenizer')
    with refuses(says='vocab.txt'):
        open_tokenizer(str(tmp_path))


def test_settings(tmp_path):
    tokenizer = opened(tmp_path, 'bert_json', truncation_side='left', model_max_length=70)
    assert tokenizer.max_len == 70
    assert tokenizer.encode('a b c', max_length=4).tokens == ['[CLS]', 'b', 'c', '[SEP]']
    assert tokenizer.tokenize('x[MASK]y') == ['x', '[MASK]', 'y']  # as a tokenizer.json has it
    options = {'do_basic_tokenize': False, 'max_len': 9}
    plain = bert.BertTokenizer.from_pretrained(str(tmp_path), **options)
    assert plain.tokenize('a.b') == ['[UNK]']
    tokenizer = opened(tmp_path, 'bert_json_added', do_lower_case=False)
    assert tokenizer.tokenize('A<e1>') == ['[UNK]', '<e1>'] and not tokenizer.do_lower_case
    assert open_tokenizer(str(tmp_path), do_lower_case=True).tokenize('A<e1>') == ['a', '<e1>']


@pytest.mark.parametrize(
    'words, lowers',
    [(['a', 'cat'], True), (['a', 'Cat'], False), (['\ud55c\uad6d'], False), (['caf\xe9'], False)],
)
def test_a_guess_that_the_vocabulary_contradicts_is_not_made(tmp_path, words, lowers):
    (tmp_path / 'vocab.txt').write_text('\n'.join([*folders.SPECIAL, *words]) + '\n', 'utf-8')
    change_json(tmp_path / 'config.json', model_type='bert')
    tokenizer = open_tokenizer(str(tmp_path))
    assert tokenizer.do_lower_case is lowers
    assert tokenizer.tokenize(' '.join(words)) == words


def test_a_default_length_is_at_most_the_models(made, tmp_path):
    folder = str(made('bert_json', 'ForSequenceClassification'))  # of 80 positions
    result = model_zoo.finetune(folder, 'text-classification', CLASSES, epochs=1, batch_size=4)
    assert result.task.settings.max_length == 80
    for length in (100, 128):  # also the default's, where it is given
        with refuses('max_length'):
            model_zoo.finetune(folder, 'text-classification', CLASSES, epochs=1, max_len=length)
