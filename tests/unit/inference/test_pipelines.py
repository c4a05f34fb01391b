"""Pipelines on tiny models: forms of input, order, batches, threads, and bad input."""

import itertools

import mxnet as mx
import numpy as np
import pytest
import tiny
from refusals import refuses
from tiny_models import LENGTH, WORDS
from variant_models import MAKERS

import bert
import model_zoo
from model_zoo.errors import CheckpointError, InputError, UnknownNameError

TEXTS = ['the cat sleeps in paris .', 'a', 'good film .', 'the dog', '', 'bad ' * 30]


@pytest.fixture(scope='module')
def classifier(saved):
    return model_zoo.pipeline(saved(bert.BertForSequenceClassification, ['bad', 'good', 'fair']))


def test_forms_of_input(classifier):
    one = classifier(TEXTS[0])
    assert isinstance(one, list) and set(one[0]) == {'label', 'score'}
    many = classifier(TEXTS)
    assert many[0] == pytest.approx(one[0])
    assert {each['label'] for each in many} <= {'bad', 'good', 'fair'}
    lazy = classifier(text for text in TEXTS)
    assert not isinstance(lazy, list)
    assert list(lazy) == many
    assert classifier([]) == []
    scores = classifier(TEXTS[0], top_k=None)
    assert sum(each['score'] for each in scores) == pytest.approx(1)
    scores = [each['score'] for each in scores]
    assert scores == sorted(scores, reverse=True)


def test_columns_and_repr(classifier):
    pandas = pytest.importorskip('pandas')
    texts = ['the cat', 'a']
    for column in (pandas.Series(texts, index=[5, 3]), np.array(texts)):
        assert classifier(column) == classifier(texts)
    with refuses(says='DataFrame'):  # the names of its columns aren't texts
        classifier(pandas.DataFrame({'text': texts}))
    assert repr(classifier).startswith('<pipeline text-classification: Bert')
    assert str(classifier.labels[0]) in repr(classifier) and "engine='mxnet'" in repr(classifier)


def test_a_pair_has_three_forms(classifier):
    wanted = classifier({'text': 'the cat', 'text_pair': 'the dog'}, top_k=None)
    assert classifier(('the cat', 'the dog'), top_k=None) == wanted
    assert classifier([('the cat', 'the dog')], top_k=None) == [wanted]
    assert classifier('the cat', top_k=None) != wanted


def test_a_generator_is_read_as_needed(classifier):
    read = []

    def texts():
        for number in range(10_000):
            read.append(number)
            yield 'the cat'

    next(classifier(texts()))
    assert len(read) < 1000


def test_batches_hold_a_number_of_tokens(classifier, monkeypatch):
    wanted, shapes, engine = classifier(TEXTS * 10), [], classifier.engine
    run = engine.run
    monkeypatch.setattr(engine, 'run', lambda *batch: shapes.append(batch[0].shape) or run(*batch))
    opened = classifier.block, classifier.tokenizer, classifier.files
    small = type(classifier)(opened, batch_tokens=64, engine=engine)
    assert small(TEXTS * 10) == [pytest.approx(each) for each in wanted]
    assert len(shapes) > 3 and all(rows * length <= 64 for rows, length in shapes)


def test_question_answering(saved):
    qa = model_zoo.pipeline(saved(bert.BertForQuestionAnswering))
    context = 'The cat sleeps in Paris. ' * 10
    answer = qa('where ?', context)
    assert qa(question='where ?', context=context) == answer
    assert qa(['where ?', 'a ?'], context)[0] == pytest.approx(answer)


def test_tokens(saved):
    tagger = model_zoo.pipeline(saved(bert.BertForTokenClassification, ['O', 'B-X', 'I-X']))
    text = 'The cat sleeps in Paris. ' * 12
    for strategy in ('simple', 'first', 'average', 'max'):
        found = tagger(text, aggregation_strategy=strategy)
        assert found, strategy
        assert {each['entity_group'] for each in found} == {'X'}
        starts = [each['start'] for each in found]
        assert starts == sorted(starts) and starts[-1] > LENGTH * 5
        for one, other in itertools.pairwise(found):
            assert one['end'] <= other['start']
    token = tagger('the cat', ignore_labels=[])[1]
    assert (token['word'], token['start'], token['end'], token['index']) == ('cat', 4, 7, 2)


def test_a_model_trained_on_words_answers_in_words(tmp_path):
    extras = {'finetuning_task': 'tagging'}
    labels = ['O', 'B-X']
    tiny.save_bert(tmp_path, WORDS, bert.BertForTokenClassification, labels, extras, seed=3)
    tagger, text = model_zoo.pipeline(str(tmp_path)), 'The CATS sleep'
    found = tagger(text, ignore_labels=[])
    words = tagger(text, ignore_labels=[], aggregation_strategy='first')
    assert found == [{**each, 'word': text[each['start'] : each['end']]} for each in words]
    pieces = tagger(text, ignore_labels=[], aggregation_strategy='none')
    assert [each['word'] for each in pieces] == ['the', 'cat', '##s', 'sleep']
    assert {each['start'] for each in found} <= {0, 4, 9}  # of words


@pytest.mark.parametrize(
    ('task', 'starts'), [(None, {0, 6, 13}), ('tagging', {0, 3, 4, 6, 7, 11, 13})]
)
def test_words_of_byte_pairs(tmp_path, task, starts):
    """Blanks part a foreign model's, as in transformers; punctuation those of a training here."""
    model, tokenizer = MAKERS['roberta'](tmp_path)
    block = tiny.initialized(bert.RobertaForTokenClassification(model.config, num_labels=9), 0.9)
    block.config.extras['finetuning_task'] = task
    block.save_pretrained(str(tmp_path), tokenizer)
    tagger = model_zoo.pipeline('token-classification', str(tmp_path))
    found = tagger("don't (stop) now", aggregation_strategy='first', ignore_labels=[])
    assert {0} < {each['start'] for each in found} <= starts


def test_entities_that_touch_do_not_overlap(saved):
    """Each piece is an entity here; those of several windows are there once."""
    tagger = model_zoo.pipeline(saved(bert.BertForTokenClassification, ['B-X', 'B-Y']))
    text = 'cats ' * 40
    for stride in (None, 5):
        found = tagger(text, aggregation_strategy='simple', ignore_labels=[], stride=stride)
        assert [(e['start'] % 5, e['end'] % 5) for e in found] == [(0, 3), (3, 4)] * 40
    # all of a window is one: of a full one and a shorter one that overlaps it, the longer stays
    tagger = model_zoo.pipeline(saved(bert.BertForTokenClassification, ['X']))
    (found,) = tagger('cat ' * (LENGTH + 6), aggregation_strategy='simple', stride=5)
    assert (found['start'], found['end']) == (0, 4 * (LENGTH - 2) - 1)


LONG = {'tagger': 'cat ' * 60, 'squad': {'question': 'a', 'context': 'cat ' * 60}}
#: what an option is unless it is given, and a value beyond its bounds and the last before it
BOUNDS = [
    ('tagger', 'stride', (LENGTH - 2) // 4, LENGTH - 2, LENGTH - 3),
    ('squad', 'doc_stride', LENGTH // 2, LENGTH, LENGTH - 5),
    ('squad', 'max_seq_len', LENGTH, LENGTH + 1, LENGTH),
]


@pytest.mark.parametrize('name, option, usual, beyond, last', BOUNDS)
def test_windows_of_long_texts(pipelines, rows_of, name, option, usual, beyond, last):
    def rows(**options):
        found = rows_of(pipelines[name], LONG[name], options)
        return [row.input_ids.tolist() for row in found]

    assert rows() == rows(**{option: usual}) != rows(**{option: usual - 1})
    assert rows(**{option: last})
    with refuses(says=option):
        rows(**{option: beyond})


@pytest.mark.parametrize('scores', [[3.0, -2.0, 0.5], [-1.0, -2.0, -3.0]])
def test_several_labels_are_those_that_are_likely(tmp_path, scores):
    extras = {'problem_type': 'multi_label_classification'}
    block = tiny.save_bert(tmp_path, WORDS, bert.BertForSequenceClassification, list('xyz'), extras)
    block.classifier.weight.set_data(block.classifier.weight.data() * 0)
    block.classifier.bias.set_data(mx.nd.array(scores))
    block.save_pretrained(str(tmp_path))
    classifier = model_zoo.pipeline(str(tmp_path))
    likely = [name for name, score in zip('xyz', scores) if score > 0]
    assert [each['label'] for each in classifier('the cat')] == likely
    assert [[each['label'] for each in some] for some in classifier(['a', 'a'])] == [likely] * 2
    ordered = [name for _, name in sorted(zip(scores, 'xyz'), reverse=True)]
    assert [each['label'] for each in classifier('a', top_k=None)] == ordered


def test_an_unknown_word_stands_in_an_entity_as_transformers_has_it(saved):
    """Its text, and no space before the full stop behind it."""
    tagger = model_zoo.pipeline(saved(bert.BertForTokenClassification, ['X']))
    (found,) = tagger('the Zebra. cats', aggregation_strategy='simple')
    assert found['word'] == 'the Zebra. cats'


def test_choices_and_next_sentence(saved):
    choose = model_zoo.pipeline(saved(bert.BertForMultipleChoice))
    one = choose({'text': 'the cat', 'choices': ['sleeps', 'in paris', 'a film']})
    assert sum(one['scores']) == pytest.approx(1)
    assert one['score'] == max(one['scores']) == one['scores'][one['label']]
    follows = model_zoo.pipeline(saved(bert.BertForNextSentencePrediction))
    assert follows(('the cat', 'sleeps'))['label'] in ('IsNext', 'NotNext')
    with refuses(says=('next-sentence', 'the cat')):
        follows('the cat')


#: names of labels, and the number of the one that contradicts; GluonNLP's order begins with neutral
AGAINST = [
    (['neutral', 'entailment', 'contradiction'], 2),
    (['entailment', 'some', 'other'], 2),
    (['other', 'some', 'entailment'], 0),
]


@pytest.mark.parametrize('names, against', AGAINST)
def test_zero_shot_finds_the_label_that_contradicts(saved, names, against):
    folder = saved(bert.BertForSequenceClassification, names)
    classify = model_zoo.pipeline('zero-shot-classification', folder)
    found = classify(TEXTS[0], candidate_labels='good', hypothesis_template='so {}')
    scores = model_zoo.pipeline(folder)((TEXTS[0], 'so good'), top_k=None)
    scores = {each['label']: each['score'] for each in scores}
    wanted = scores['entailment'] / (scores['entailment'] + scores[names[against]])
    assert found['scores'] == [pytest.approx(wanted, rel=1e-5)]
    assert sum(classify(TEXTS[0], candidate_labels='good, bad')['scores']) == pytest.approx(1)


def test_answers_are_whole_words(pipelines):
    for align, starts, ends in ((True, {0, 5}, {4, 9}), (False, {0, 3, 5}, {3, 4, 8, 9})):
        found = pipelines['squad']('where ?', 'cats dogs', top_k=99, align_to_words=align)
        assert {each['start'] for each in found} == starts
        assert {each['end'] for each in found} - {0} == ends  # 0: no answer


def test_the_shortest_texts(saved):
    folder = saved(bert.BertModel)
    assert np.shape(model_zoo.pipeline(folder, max_length=3)('the cat')) == (1, 3, 16)
    with refuses(says='max_length'):
        model_zoo.pipeline(folder, max_length=2)


def test_rerank(saved):
    folder = saved(bert.BertForSequenceClassification, ['relevance'])
    rank = model_zoo.pipeline('rerank', folder)
    found = rank({'query': 'where ?', 'documents': TEXTS}, return_documents=True)
    assert sorted(each['corpus_id'] for each in found) == list(range(len(TEXTS)))
    scores = [each['score'] for each in found]
    assert scores == sorted(scores, reverse=True) and all(0 < score < 1 for score in scores)
    assert all(each['text'] == TEXTS[each['corpus_id']] for each in found)
    two = rank([{'query': 'where ?', 'documents': TEXTS}] * 2, top_k=2)
    best = [hit['corpus_id'] for hit in found[:2]]
    assert [[hit['corpus_id'] for hit in each] for each in two] == [best] * 2
    assert rank(('where ?', found[0]['text'])) == pytest.approx(scores[0])
    assert rank({'query': 'where ?', 'documents': []}) == []
    for item in ('where ?', {'query': 'where ?'}, {'query': 'a', 'documents': 'a'}):
        with refuses(says='documents'):
            rank(item)
    with refuses(says='rerank'):
        model_zoo.pipeline('rerank', saved(bert.BertForSequenceClassification, ['bad', 'good']))


BAD_INPUT = [
    *((inputs, {}) for inputs in (3, [b'text'], [None], {'txt': 'a'})),
    *(('a', {'top_k': count}) for count in (0, True, 10**5000)),
    *(('a', {name: 2}) for name in ('topk', 'batch_size')),
    ('a', {'function_to_apply': 'tanh'}),
]


@pytest.mark.parametrize('inputs, options', BAD_INPUT)
def test_bad_input(classifier, inputs, options):
    with pytest.raises((InputError, UnknownNameError)):
        classifier(inputs, **options)


@pytest.mark.parametrize('missing', [None, float('nan'), ('a', float('nan'))])
def test_a_missing_text_is_named_by_every_pipeline(pipelines, missing):
    for pipeline in pipelines.values():
        with pytest.raises(InputError) as caught:
            pipeline([missing, 'a'])
        assert caught.value.where.line == 0


def test_an_encoder_has_no_labels(saved):
    for task in ('text-classification', 'question-answering'):
        with pytest.raises(InputError) as caught:
            model_zoo.pipeline(task, saved(bert.BertModel))
        assert caught.value.field == 'model'


def test_arguments_of_transformers(saved):
    folder = saved(bert.BertForSequenceClassification, ['bad', 'good'])
    given = {'model': folder, 'tokenizer': folder, 'truncation': True}
    found = model_zoo.pipeline('sentiment-analysis', **given)
    assert found('good')[0]['label'] in ('bad', 'good')
    wrong = {'device': -1, 'torch_dtype': 'float32', 'truncation': 'only_second'}
    for name, value in {**wrong, 'tokenizer': 'bert-base-uncased'}.items():
        with pytest.raises((InputError, TypeError)):
            model_zoo.pipeline('text-classification', folder, **{name: value})


BAD_PIPELINES = [
    *(([name], {}) for name in ('text-classification', 'summarization', 'sentence-similarty')),
    *(([name, bert.BertModel], {}) for name in ('text-classification', 'text-generation')),
    ([bert.BertModel], {'max_length': 1000}),
]


@pytest.mark.parametrize('arguments, options', BAD_PIPELINES)
def test_bad_pipelines(saved, arguments, options):
    arguments = [each if isinstance(each, str) else saved(each) for each in arguments]
    with pytest.raises((CheckpointError, InputError, UnknownNameError)):
        model_zoo.pipeline(*arguments, **options)
