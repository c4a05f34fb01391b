"""The job for Ray of the page on many files."""

import pages
import pytest
from ray_alone import ROOT, run_alone
from tiny_models import WORDS, save_bert

from bert import BertForSequenceClassification, BertModel
from bert_embedding import BertEmbedding
from model_zoo import pipeline

PAGE = ROOT / 'docs' / 'tasks' / 'many_files.rst'


@pytest.mark.slow
def test_ray_gives_each_row_what_one_process_does(tmp_path):
    pandas = pytest.importorskip('pandas')
    pytest.importorskip('pyarrow')
    classifier = save_bert(
        tmp_path / 'sentiment' / 'best_model', BertForSequenceClassification, ['bad', 'good']
    )
    encoder = save_bert(tmp_path / 'encoder', BertModel)
    texts = [' '.join(WORDS[number % 9 :][: 1 + number % 4]) for number in range(90)]
    (tmp_path / 'texts').mkdir()
    for number in range(3):
        part = pandas.DataFrame({'id': range(90), 'text': texts})[number::3]
        part.to_parquet(tmp_path / 'texts' / f'{number}.parquet')
    [job] = [each.text for each in pages.find_blocks(PAGE.read_text('utf-8')) if 'ray' in each.file]
    for old, new in (('/shared', tmp_path), ('all-MiniLM-L6-v2', encoder), ('256', '16')):
        job = job.replace(old, str(new))
    job = job.replace('ray.init()', 'ray.init(num_cpus=2)')
    assert run_alone('-c', f'{job}\nprint(len(rows.columns()))') == 4
    found = pandas.read_parquet(tmp_path / 'labelled').sort_values('id')
    assert found['text'].tolist() == texts
    labels = pipeline('text-classification', str(classifier))(texts, top_k=1)
    assert found['label'].tolist() == [each[0]['label'] for each in labels]
    vectors = BertEmbedding(str(encoder)).sentence_vectors(texts, normalize=True)
    assert abs(vectors - found['vector'].tolist()).max() < 1e-5
