"""Story Cloze: the reader, the split, and features."""

import pytest
from toy_data import STORIES as HEADER

from model_zoo.errors import InputError
from model_zoo.tasks.choice import SwagExample, encode_stories, hold_out, read_story_cloze

ROW = 'a-1,Tom ran.,"He fell, hard.",It hurt.,"He said ""ow"".",He wept.,He flew.,1'


def write(folder, *lines):
    path = folder / 'stories.csv'
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return path


def test_a_file_is_read(tmp_path):
    path = write(tmp_path, HEADER, ROW, '', ROW.replace('a-1', 'b').replace(',1', ',2'))
    first, second = read_story_cloze(path)
    assert first == SwagExample(
        'a-1', 'Tom ran. He fell, hard. It hurt. He said "ow".', '', ('He wept.', 'He flew.'), 0
    )
    assert (second.guid, second.label) == ('b', 1)
    (unlabelled,) = read_story_cloze(write(tmp_path, HEADER.rpartition(',')[0], ROW[:-2]))
    assert unlabelled == first._replace(label=None)


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        ((), 'has no stories below the columns InputStoryid'),
        (('storyid,title', '1,x'), 'lacks InputStoryid, InputSentence1'),
        ((HEADER,), 'has no stories'),
        ((HEADER, ROW + ',x'), 'line 2: 9 fields, where the header has 8'),
        ((HEADER, ROW, ROW[:-1] + '3'), "line 3: AnswerRightEnding is '3'"),
        ((HEADER, ROW.replace('He wept.', ' ')), 'line 2: a story or an ending is empty'),
        ((HEADER, 'a,"b'), 'line 2: .*quote|line 2: unexpected end of data'),
    ],
)
def test_bad_files_are_named(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read_story_cloze(write(tmp_path, *lines))


@pytest.mark.data
def test_the_released_file(data_dir):
    stories = read_story_cloze(data_dir / 'rocstories' / 'cloze_test_val__spring2016.csv')
    assert len(stories) == 1871 and {story.label for story in stories} == {0, 1}
    assert len({story.guid for story in stories}) == 1871


def test_the_same_examples_are_held_out():
    kept, held = hold_out(list(range(50)), 10)
    assert (kept, held) == hold_out(list(range(50)), 10)
    assert len(held) == 10 and held == sorted(held) and held != list(range(40, 50))
    assert sorted(kept + held) == list(range(50))


def features(max_len, context, *endings):
    story = SwagExample('', ' '.join(context), '', tuple(' '.join(ending) for ending in endings), 1)
    (feature,) = encode_stories(
        [story], lambda text: list(map(int, text.split())), (90, 91, 92), max_len
    )
    assert feature.label == 1
    return [choice.tolist() for choice in feature.input_ids]


def test_features():
    assert features(9, '1234', '56', '7') == [
        [90, 1, 2, 3, 4, 91, 5, 6, 92],
        [90, 1, 2, 3, 4, 91, 7, 92],
    ]


@pytest.mark.parametrize(
    ('max_len', 'context', 'ending'),
    [(8, '123', '56'), (7, '12', '56'), (6, '12', '5'), (5, '1', '5')],
)
def test_long_stories_lose_their_ends(max_len, context, ending, caplog):
    expected = [90, *map(int, context), 91, *map(int, ending), 92]
    assert len(expected) == max_len
    assert features(max_len, '1234', '56', '7')[0] == expected
    assert f'1 of 1 stories are longer than {max_len} tokens: cut' in caplog.text


def test_a_long_ending_leaves_the_story_half_of_the_room():
    assert features(9, '12345', '56789', '7')[0] == [90, 1, 2, 3, 91, 5, 6, 7, 92]
    assert features(9, '12', '56789', '7')[0] == [90, 1, 2, 91, 5, 6, 7, 8, 92]
    with pytest.raises(InputError, match='a length of 4 is too small'):
        features(4, '1', '2', '3')
