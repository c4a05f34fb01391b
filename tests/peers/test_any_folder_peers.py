"""Everyone's folders: the ids of transformers, and of what is saved there and back."""

import json

import folders
import pytest
from json_files import cases

from model_zoo.opening import open_tokenizer

transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

MODEL_TYPES = {'XLMRoberta': 'xlm-roberta', 'DebertaV2': 'deberta-v2'}
TEXTS = cases('odd_texts')['folders']


@pytest.mark.parametrize('kind', folders.FOLDERS)
def test_ids(tmp_path, kind):
    folder, saved = tmp_path / 'folder', tmp_path / 'saved'
    size, prefix = folders.write_tokenizer(folder, kind), folders.FOLDERS[kind][0]
    saved.mkdir()
    for each in (folder, saved):
        model_type = MODEL_TYPES.get(prefix, prefix.lower())
        (each / 'config.json').write_text(json.dumps({'model_type': model_type}))
    ours = open_tokenizer(str(folder))
    ours.save_pretrained(saved)
    theirs, back = map(transformers.AutoTokenizer.from_pretrained, (folder, saved))
    assert len(ours) == len(theirs) == len(back) == size
    for text in TEXTS:
        for texts in ((text,), (text, 'a b')):
            expected = theirs(*texts)
            assert ours.encode(*texts) == expected['input_ids'] == back(*texts)['input_ids']
            if 'token_type_ids' in expected:
                assert ours.encode(*texts).token_types.tolist() == expected['token_type_ids']
