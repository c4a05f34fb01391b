"""Write tests/fixtures/squad*: what pytorch-pretrained-bert's run_squad.py makes of questions.

Needs torch, pytorch-pretrained-bert 0.6.2, ``examples/run_squad.py`` of its repository, which its
package lacks, and SQuAD's official scripts in a folder. For the scores on real paragraphs also
transformers, SQuAD's ``*-v2.0-part.json`` and a model that finetune_transformers.py saved:

    python tests/oracle/make_squad_fixtures.py run_squad.py --official FOLDER
    python tests/oracle/make_squad_fixtures.py run_squad.py --data_dir DATA --model FOLDER

The original leaves out the n-best answers for version 1.1, and crashes on a paragraph without a
word.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from pytorch_pretrained_bert import optimization
from pytorch_pretrained_bert.tokenization import BertTokenizer

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures'
NUM_REAL = 40  # questions with scores

CONTEXTS = [
    'The leader was John Smith (1895-1943). He was born in  New\tYork, and died in "Paris".',
    'Caf\u00e9 Z\u00fcrich\u2019s owner, Jos\u00e9 Mu\u00f1oz-P\u00e9rez, paid $1,234.50 (half of '
    "it in cash) on 3\u00a0May 1999; na\u00efve co\u0308operation wasn't his style.",
    '\u5317\u4eac\u662f\u4e2d\u56fd\u7684\u9996\u90fd abc\u4e2ddef. \u0130stanbul lies\u202fon the '
    "Bosphorus,\u200bsaid A.B.C. D'Arc!!! zero\u00adwidth ... unknown \u2603\u2603 words",
    ' '.join(
        f'In the year {1900 + 7 * number} the town of Place{number} (pop. {number * 31},000) had '
        f'{number} bridges.'
        for number in range(12)
    ),
]
QUESTIONS = [
    (0, 'When was he born?', '1895'),
    (0, 'Who was the leader, and what was he called by all the people of the town?', 'John Smith'),
    (0, 'Where did he die?', 'Paris'),
    (0, 'Is there an answer?', None),
    (1, "Who is the caf\u00e9's owner?", 'Jos\u00e9 Mu\u00f1oz-P\u00e9rez'),
    (1, 'How much?', '1,234.50 (half of it'),
    (1, 'When?', 'May 1999;'),
    (1, 'A part of a word?', 'operation'),
    (2, '\u4e2d\u56fd\u7684\u9996\u90fd?', '\u5317\u4eac'),
    (2, 'Which town?', '\u0130stanbul'),
    (2, 'Who?', "A.B.C. D'Arc"),
    (2, 'What is unknown?', '\u2603'),
    (3, 'Which place has 11 bridges?', 'Place11'),
    (3, 'How many people in the second?', '31,000'),
    (3, 'Everything?', 'In the year 1900 the town of Place0 (pop. 0,000) had 0 bridges. In the'),
    (3, 'Nothing?', None),
]
WORDS = ['the', 'was', 'in', 'year', 'town', 'of', 'had', 'bridges', 'john', 'John', 'cafe']

CONFIGS = [
    # version 2, lower case, max_seq_length, doc_stride, max_query_length, n best, longest answer
    (False, True, 384, 128, 64, 20, 30),
    (True, True, 32, 8, 10, 5, 6),
    (True, False, 40, 20, 12, 20, 30),
    (False, False, 28, 16, 6, 3, 10),
]


def made_up():
    """A SQuAD file's content."""
    paragraphs = [{'context': context, 'qas': []} for context in CONTEXTS]
    for number, (place, question, answer) in enumerate(QUESTIONS):
        answers = []
        if answer is not None:
            answers = [{'text': answer, 'answer_start': CONTEXTS[place].index(answer)}]
        entry = {'id': f'q{number}', 'question': question, 'answers': answers}
        paragraphs[place]['qas'].append({**entry, 'is_impossible': not answers})
    return {'version': 'v2.0', 'data': [{'title': 'made up', 'paragraphs': paragraphs}]}


def make_vocab():
    chars = sorted({char for text in [*CONTEXTS, *(q for _, q, _ in QUESTIONS)] for char in text})
    plain = sorted({lower for char in chars for lower in (char, char.lower()) if len(lower) == 1})
    plain = [char for char in plain if not char.isspace() and char != '\u2603']
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    letters = [char for char in plain if char.isalnum()]
    return [*special, *plain, *(f'##{char}' for char in letters), *WORDS]


def load_original(path):
    if not hasattr(optimization, 'warmup_linear'):
        optimization.warmup_linear = None  # of 0.6.1, used in training only
    spec = importlib.util.spec_from_file_location('run_squad', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def make_metrics(official):
    """Made-up answers and predictions, and what the official scripts say of them."""
    rng = np.random.RandomState(1)
    words = ['the', 'a', 'an', 'Cat', 'cat', 'dog', 'dogs', 'U.S.', 'us', 'one-two', 'caf\u00e9']
    words += ['\u2013', '\u201cdog\u201d', 'CAT,', '!', 'theatre']
    questions, predictions, null_odds = [], {}, {}
    for number in range(60):
        texts = [' '.join(rng.choice(words, rng.randint(1, 5))) for _ in range(3)]
        answers = texts[: rng.randint(1, 3)] if number % 3 else []
        answers += [answers[0] + ' house'] if number % 5 == 1 and answers else []
        name = f'q{number}'
        questions.append({'id': name, 'question': '?', 'answers': [{'text': t} for t in answers]})
        right = answers[0] if answers else ''
        predictions[name] = [right, right.upper(), texts[2], '', 'the ' + right][rng.randint(5)]
        null_odds[name] = round(float(rng.randn() + (0 if answers else 1.5)), 1)
    content = {'data': [{'paragraphs': [{'context': '', 'qas': questions}]}], 'version': '1.1'}
    some = [question for question in questions if question['answers']]
    of_v1 = {'data': [{'paragraphs': [{'context': '', 'qas': some}]}], 'version': '1.1'}
    with tempfile.TemporaryDirectory() as folder:

        def run(script, data, *more):
            paths = []
            for name, value in {'data': data, 'predictions': predictions, **dict(more)}.items():
                paths += ['--na-prob-file'] if name == 'null_odds' else []
                paths.append(os.path.join(folder, name))
                pathlib.Path(paths[-1]).write_text(json.dumps(value), encoding='utf-8')
            command = [sys.executable, os.path.join(official, script), *paths]
            return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

        return {
            'content': content,
            'predictions': predictions,
            'null_odds': null_odds,
            'v1': run('evaluate-v1.1.py', of_v1),
            'v2': run('evaluate-v2.0.py', content),
            'best': run('evaluate-v2.0.py', content, ('null_odds', null_odds)),
        }


def write_json(name, content):
    text = json.dumps(content, ensure_ascii=False, separators=(',', ':'))
    (FIXTURES / name).write_text(text + '\n', encoding='utf-8')


def make_small(original, official):
    content, vocab = made_up(), make_vocab()
    rng, cases, arrays = np.random.RandomState(0), [], {}
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = os.path.join(folder, 'vocab.txt')
        pathlib.Path(vocab_file).write_text('\n'.join(vocab) + '\n', encoding='utf-8')
        for number, config in enumerate(CONFIGS):
            tokenizer = BertTokenizer(vocab_file, do_lower_case=config[1])
            _, training = read(original, tokenizer, content, config, True)
            examples, features = read(original, tokenizer, content, config, False)
            # scores of all the padding too; rounded, so that there are equal ones
            scores = rng.randn(len(features), 2, config[2]).astype('float32').round(1) * 4
            arrays[f'scores{number}'] = scores
            answers = answers_of(original, examples, features, scores, config)
            windows = windows_of(training)
            cases.append({'config': config, 'windows': windows, 'answers': answers})
    metrics = make_metrics(official)
    small = {'vocab': vocab, 'content': content, 'cases': cases, 'metrics': metrics}
    write_json('squad.json', small)
    np.savez_compressed(FIXTURES / 'squad_scores.npz', **arrays)


def make_real(original, data_dir, folder):
    import torch
    from transformers import BertForQuestionAnswering

    tokenizer = BertTokenizer(os.path.join(data_dir, 'vocab', 'bert-uncased', 'vocab.txt'))
    model = BertForQuestionAnswering.from_pretrained(folder).eval()
    config = (True, True, 256, 128, 64, 20, 30)
    digests = {}
    for name in ('train', 'dev'):
        path = os.path.join(data_dir, 'squad', f'{name}-v2.0-part.json')
        with open(path, encoding='utf-8') as file:
            content = json.load(file)
        _, features = read(original, tokenizer, content, config, True)
        rows = json.dumps(windows_of(features), separators=(',', ':'))
        digests[name] = hashlib.sha256(rows.encode()).hexdigest()
    examples, features = read(original, tokenizer, content, config, False)
    examples = examples[:NUM_REAL]
    features = [feature for feature in features if feature.example_index < NUM_REAL]
    scores = []
    for feature in features:
        size = sum(feature.input_mask)
        row = [feature.input_ids[:size]], [feature.segment_ids[:size]]
        words, types = map(torch.tensor, row)
        with torch.no_grad():
            outputs = model(words, token_type_ids=types)
        pair = [outputs.start_logits[0], outputs.end_logits[0]]
        scores.append(torch.stack(pair).numpy().astype('float16'))
    answers = {}
    for version_2 in (True, False):
        wide = [pair.astype('float32') for pair in scores]
        own = (version_2, *config[1:])
        answers[str(version_2)] = answers_of(original, examples, features, wide, own)
    real = {'config': config, 'windows': digests, 'answers': answers}
    write_json('squad_real.json', real)
    sizes, scores = [pair.shape[1] for pair in scores], np.concatenate(scores, axis=1)
    np.savez_compressed(FIXTURES / 'squad_real.npz', scores=scores, sizes=sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('run_squad', help='path of the original')
    parser.add_argument('--official', help='folder of evaluate-v1.1.py and evaluate-v2.0.py')
    parser.add_argument('--data_dir', help='with squad/ and vocab/bert-uncased/')
    parser.add_argument('--model', help='folder of a trained model')
    args = parser.parse_args()
    original = load_original(args.run_squad)
    if args.model:
        make_real(original, args.data_dir, args.model)
    else:
        make_small(original, args.official)


if __name__ == '__main__':
    main()
