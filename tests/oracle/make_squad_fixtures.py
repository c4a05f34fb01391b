"""Write tests/fixtures/squad*: what pytorch-pretrained-bert's run_squad.py makes of questions.

Needs torch, pytorch-pretrained-bert 0.6.2, ``examples/run_squad.py`` of its repository, which its
package lacks, and SQuAD's official scripts in a folder:

    python tests/oracle/make_squad_fixtures.py run_squad.py --official FOLDER

Texts, vocabulary, settings and predictions are those in squad.json. The configurations are: version
2, lower case, max_seq_length, doc_stride, max_query_length, n best, longest answer. The original
leaves out the n-best answers for version 1.1, and crashes on a paragraph without a word.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from oracle_files import FIXTURES, read_json, write_json  # isort: skip
from pytorch_pretrained_bert import optimization
from pytorch_pretrained_bert.tokenization import BertTokenizer

from model_zoo.app.originals import load_script

#: of 0.6.1, used in training only
optimization.warmup_linear = None


def first_answers(content, version_2, folder):
    """Path of a file with at most one answer a question, and for 1.1 only those with one."""
    for article in content['data']:
        for paragraph in article['paragraphs']:
            for entry in paragraph['qas']:
                entry['answers'] = entry['answers'][:1]
            if not version_2:
                paragraph['qas'] = [entry for entry in paragraph['qas'] if entry['answers']]
    path = os.path.join(folder, 'squad.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(content, file)
    return path


def read(original, tokenizer, content, config, training):
    version_2, _, length, stride, query, _, _ = config
    with tempfile.TemporaryDirectory() as folder:
        path = first_answers(json.loads(json.dumps(content)), version_2, folder)
        examples = original.read_squad_examples(path, training, version_2)
    return examples, original.convert_examples_to_features(
        examples, tokenizer, length, stride, query, training
    )


def windows_of(features):
    """What there is to know of each window, without padding."""
    rows = []
    for feature in features:
        size = sum(feature.input_mask)
        best = [place for place, best in feature.token_is_max_context.items() if best]
        second = feature.segment_ids[:size].index(1)
        span = [feature.start_position, feature.end_position]
        rows.append([feature.example_index, feature.input_ids[:size], second, span, best])
    return rows


def answers_of(original, examples, features, scores, config):
    """predictions, nbest and null_odds that the original writes for some scores."""
    version_2, lower, *_, n_best, longest = config
    results = [
        original.RawResult(feature.unique_id, start.tolist(), end.tolist())
        for feature, (start, end) in zip(features, scores)
    ]
    with tempfile.TemporaryDirectory() as folder:
        names = ('predictions', 'nbest', 'null_odds')
        paths = {name: os.path.join(folder, name) for name in names}
        options = (n_best, longest, lower, *paths.values(), False, version_2, -1.0)
        original.write_predictions(examples, features, results, *options)
        found = {'null_odds': {}}  # not written for version 1.1
        for name, path in paths.items():
            if os.path.exists(path):
                with open(path, encoding='utf-8') as file:
                    found[name] = json.load(file)
    return found


def run_official(official, metrics):
    """Record what the official scripts say of answers and predictions."""
    content = metrics['content']
    (article,) = content['data']
    (paragraph,) = article['paragraphs']
    some = [question for question in paragraph['qas'] if question['answers']]
    of_v1 = {**content, 'data': [{'paragraphs': [{**paragraph, 'qas': some}]}]}
    with tempfile.TemporaryDirectory() as folder:

        def run(script, data, *more):
            paths = []
            for name, value in {
                'data': data,
                'predictions': metrics['predictions'],
                **dict(more),
            }.items():
                paths += ['--na-prob-file'] if name == 'null_odds' else []
                paths.append(os.path.join(folder, name))
                pathlib.Path(paths[-1]).write_text(json.dumps(value), encoding='utf-8')
            command = [sys.executable, os.path.join(official, script), *paths]
            return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

        metrics['v1'] = run('evaluate-v1.1.py', of_v1)
        metrics['v2'] = run('evaluate-v2.0.py', content)
        null_odds = ('null_odds', metrics['null_odds'])
        metrics['best'] = run('evaluate-v2.0.py', content, null_odds)


def make_small(original, official):
    small, rng, arrays = read_json('squad.json'), np.random.RandomState(0), {}
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = os.path.join(folder, 'vocab.txt')
        pathlib.Path(vocab_file).write_text('\n'.join(small['vocab']) + '\n', encoding='utf-8')
        for number, case in enumerate(small['cases']):
            config = case['config']
            tokenizer = BertTokenizer(vocab_file, do_lower_case=config[1])
            _, training = read(original, tokenizer, small['content'], config, True)
            examples, features = read(original, tokenizer, small['content'], config, False)
            # scores of all the padding too; rounded, so that there are equal ones
            scores = rng.randn(len(features), 2, config[2]).astype('float32').round(1) * 4
            arrays[f'scores{number}'] = scores
            case['answers'] = answers_of(original, examples, features, scores, config)
            case['windows'] = windows_of(training)
    run_official(official, small['metrics'])
    write_json('squad.json', small)
    np.savez_compressed(FIXTURES / 'squad_scores.npz', **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('run_squad', help='path of the original')
    parser.add_argument('--official', help='folder of evaluate-v1.1.py and evaluate-v2.0.py')
    args = parser.parse_args()
    make_small(load_script(pathlib.Path(args.run_squad)), args.official)


if __name__ == '__main__':
    main()
