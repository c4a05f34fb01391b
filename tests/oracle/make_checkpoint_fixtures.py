"""Write tests/fixtures/checkpoints/: small random checkpoints, written by the original programs.

    python tests/oracle/make_checkpoint_fixtures.py --originals DIR [NAME ...]

DIR has clones of google-research/bert, openai/gpt-2, openai/finetune-transformer-lm and
kimiyoung/transformer-xl, in folders called bert, gpt-2, finetune-transformer-lm and
transformer-xl; that of BERT at a commit before February 2019 (such as bee6030~1), when its gelu
still was the exact one, by erf. Needs tensorflow-cpu 2.15, torch and transformers.

Each folder has the checkpoint as its program writes it, and outputs.npz: inputs, and what the
program computes from them. The configuration there, and a vocabulary, stay. Without NAMEs all are
written.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import types

import numpy as np
from oracle_files import FIXTURES, read_json
from tensorflow_1 import load_original

BATCH, LENGTH, VOCAB = 3, 7, 31


def make_inputs(seed=0):
    random = np.random.RandomState(seed)
    words = random.randint(0, VOCAB, (BATCH, LENGTH)).astype('int32')
    types = random.randint(0, 2, (BATCH, LENGTH)).astype('int32')
    valid = np.array([LENGTH, 4, 5], 'int32')
    return words, types, valid


def begin(name, config='config.json'):
    """Return a folder in which nothing but the configuration and a vocabulary is left, and it."""
    folder, fields = FIXTURES / 'checkpoints' / name, read_json(f'checkpoints/{name}/{config}')
    for path in folder.iterdir():
        if path.name not in (config, 'vocab.txt'):
            path.unlink()
    return folder, fields


# -- TensorFlow -----------------------------------------------------------------------------------


def randomize(tf, session, seed=0):
    """Give all variables random values, biases and normalizations among them."""
    random = np.random.RandomState(seed)
    session.run(tf.global_variables_initializer())
    for variable in tf.trainable_variables():
        base = 1.0 if variable.op.name.endswith(('gamma', '/g')) else 0.0
        value = base + 0.3 * random.randn(*variable.shape.as_list())
        variable.load(value.astype('float32'), session)


def save(tf, session, folder, name='model.ckpt'):
    saver = tf.train.Saver(save_relative_paths=True)
    saver.save(session, str(folder / name), write_meta_graph=False)


def bert_tensorflow(originals):
    """google-research/bert's pre-training model, with the variables of its optimizer."""
    training = load_original(str(originals / 'bert/run_pretraining.py'))
    tf, modeling = training.tf, training.modeling
    folder, fields = begin('bert_tensorflow', 'bert_config.json')
    config = modeling.BertConfig.from_dict(fields)
    words, types, valid = make_inputs()
    positions = np.tile(np.arange(LENGTH, dtype='int32'), (BATCH, 1))
    mask = (positions < valid[:, None]).astype('int32')
    with tf.Graph().as_default(), tf.Session() as session:
        model = modeling.BertModel(
            config, False, tf.constant(words), tf.constant(mask), tf.constant(types)
        )
        mlm_loss, _, mlm = training.get_masked_lm_output(
            config,
            model.get_sequence_output(),
            model.get_embedding_table(),
            tf.constant(positions),
            tf.constant(words),
            tf.constant(mask.astype('float32')),
        )
        nsp_loss, _, nsp = training.get_next_sentence_output(
            config, model.get_pooled_output(), tf.constant([0, 1, 1])
        )
        training.optimization.create_optimizer(mlm_loss + nsp_loss, 1e-4, 10, 2, False)
        randomize(tf, session)
        save(tf, session, folder, 'bert_model.ckpt')
        outputs = {
            'layers': tf.stack(model.get_all_encoder_layers()),
            'pooled': model.get_pooled_output(),
            'masked_lm': tf.reshape(mlm, (BATCH, LENGTH, -1)),
            'next_sentence': nsp,
            'loss': mlm_loss + nsp_loss,
        }
        outputs = session.run(outputs)
    (folder / 'checkpoint').unlink()  # Google's archives have none
    np.savez_compressed(folder / 'outputs.npz', words=words, types=types, valid=valid, **outputs)


def bert_squad_tensorflow(originals):
    """google-research/bert's model for SQuAD; newer of two checkpoints in the folder."""
    squad = load_original(str(originals / 'bert/run_squad.py'))
    tf, modeling = squad.tf, squad.modeling
    folder, fields = begin('bert_squad_tensorflow', 'bert_config.json')
    config = modeling.BertConfig.from_dict(fields)
    words, types, valid = make_inputs(1)
    mask = (np.arange(LENGTH) < valid[:, None]).astype('int32')
    with tf.Graph().as_default(), tf.Session() as session:
        outputs = squad.create_model(
            config, False, tf.constant(words), tf.constant(mask), tf.constant(types), False
        )
        randomize(tf, session, 1)
        saver = tf.train.Saver(save_relative_paths=True)
        for step in (5, 10):
            saver.save(session, str(folder / 'model.ckpt'), step, write_meta_graph=False)
        start, end = session.run(outputs)
    np.savez_compressed(
        folder / 'outputs.npz', words=words, types=types, valid=valid, start=start, end=end
    )


def gpt2_tensorflow(originals):
    """openai/gpt-2's model."""
    original = load_original(str(originals / 'gpt-2/src/model.py'))
    tf = original.tf
    folder, hparams = begin('gpt2_tensorflow', 'hparams.json')
    words, _, _ = make_inputs(2)
    with tf.Graph().as_default(), tf.Session() as session:
        results = original.model(types.SimpleNamespace(**hparams), tf.constant(words))
        randomize(tf, session, 2)
        save(tf, session, folder)
        scores, presents = session.run((results['logits'], results['present']))
    np.savez_compressed(folder / 'outputs.npz', words=words, scores=scores, presents=presents)


def transfo_xl_tensorflow(originals):
    """kimiyoung/transformer-xl's model with embeddings of several sizes."""
    write_transfo_xl(originals, 'transfo_xl_tensorflow')


def transfo_xl_tied_tensorflow(originals):
    """The same with one embedding, and relative biases that all layers share."""
    write_transfo_xl(originals, 'transfo_xl_tied_tensorflow')


def write_transfo_xl(originals, name):
    folder, config = begin(name)
    original = load_original(str(originals / 'transformer-xl/tf/model.py'))
    tf = original.tf
    random = np.random.RandomState(4)
    words = random.randint(0, VOCAB, (2, BATCH, LENGTH + 1)).astype('int32')  # two segments
    initializer = tf.initializers.random_normal(stddev=0.02)
    arguments = {**config, 'n_token': VOCAB, 'dropout': 0.1, 'dropatt': 0.1}
    arguments = {key: arguments[key] for key in arguments if key not in ('vocab_size', 'tgt_len')}
    losses, states = [], []
    with tf.Graph().as_default(), tf.Session() as session:
        mems = [tf.zeros((5, BATCH, 8)) for _ in range(config['n_layer'])]
        for segment in words:
            with tf.variable_scope(tf.get_variable_scope(), reuse=bool(losses)):
                loss, mems = original.transformer(
                    dec_inp=tf.constant(segment[:, :-1].T),
                    target=tf.constant(segment[:, 1:].T),
                    mems=mems,
                    is_training=False,
                    use_tpu=False,
                    initializer=initializer,
                    proj_initializer=initializer,
                    **arguments,
                )
            losses.append(loss)
            states.append(tf.stack(mems))
        randomize(tf, session, 4)
        save(tf, session, folder)
        losses, states = session.run((losses, states))
    np.savez_compressed(folder / 'outputs.npz', words=words, losses=losses, mems=states)


# -- NumPy ----------------------------------------------------------------------------------------


def gpt_numpy(originals):
    """openai/finetune-transformer-lm's model, in the format of its published weights."""
    for name in ('datasets', 'analysis', 'text_utils'):  # they import much, and aren't needed
        stub = types.ModuleType(name)
        stub.rocstories = stub.TextEncoder = None
        sys.modules[name] = stub
    original = load_original(str(originals / 'finetune-transformer-lm/train.py'))
    tf = original.tf
    folder, sizes = begin('gpt_numpy')  # the release has no configuration: its size is in train.py
    vars(original).update(sizes, n_vocab=VOCAB, n_special=3, afn='gelu', clf_token=VOCAB + 2)
    vars(original).update(
        dict.fromkeys(('embd_pdrop', 'attn_pdrop', 'resid_pdrop', 'clf_pdrop'), 0)
    )
    layers, block = [], original.block
    original.block = lambda *args, **kwargs: layers.append(block(*args, **kwargs)) or layers[-1]
    words = np.random.RandomState(3).randint(0, VOCAB, (2, 12)).astype('int32')
    words[:, -1] = VOCAB + 2
    places = np.broadcast_to(np.arange(12) + VOCAB + 3, words.shape)
    inputs = np.stack([words, places], -1).astype('int32')
    with tf.Graph().as_default(), tf.Session() as session:
        original.model(tf.constant(inputs), tf.ones((2, 12)), tf.constant([0]))
        randomize(tf, session, 3)
        variables = original.find_trainable_variables('model')[: 1 + 2 * 12]
        arrays, outputs = session.run((variables, layers))
    table = arrays.pop(0)  # tokens, special tokens, positions
    arrays = [table[VOCAB + 3 :], table[:VOCAB], *arrays]
    shapes = json.dumps([list(array.shape) for array in arrays], indent=1)
    (folder / 'params_shapes.json').write_text(shapes + '\n')
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    for number, part in enumerate(np.array_split(flat, 10)):
        np.save(folder / f'params_{number}.npy', part)
    np.savez_compressed(
        folder / 'outputs.npz', words=words[:, :-1], layers=np.stack(outputs)[:, :, :-1]
    )


# -- Hugging Face ---------------------------------------------------------------------------------


def write_transformers(name, class_name, config, **options):
    """A model of transformers, as its `save_pretrained` writes it."""
    import torch
    import transformers

    torch.manual_seed(0)
    model_class = getattr(transformers, class_name)
    model = model_class(model_class.config_class(**config)).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            base = 1.0 if key.endswith('weight') and ('ln_' in key or 'LayerNorm' in key) else 0.0
            value.copy_(base + 0.3 * torch.randn_like(value))
        words, _, _ = make_inputs(5)
        outputs = model(torch.tensor(words).long(), output_hidden_states=True)
    folder, _ = begin(name)
    model.save_pretrained(folder, **options)
    for path in folder.iterdir():
        path.chmod(0o644)
        if path.name == 'generation_config.json':
            path.unlink()
    named = {key: value.numpy() for key, value in outputs.items() if hasattr(value, 'numpy')}
    layers = torch.stack(outputs['hidden_states']).numpy()
    np.savez_compressed(folder / 'outputs.npz', words=words, layers=layers, **named)


def bert_transformers(originals):
    config = {**read_json('checkpoints/bert_tensorflow/bert_config.json'), 'layer_norm_eps': 1e-5}
    write_transformers('bert_transformers', 'BertForPreTraining', config)


def gpt_transformers(originals):
    config = read_json('checkpoints/gpt_numpy/config.json')
    write_transformers('gpt_transformers', 'OpenAIGPTLMHeadModel', config)


def gpt2_transformers(originals):
    """In several files."""
    config = read_json('checkpoints/gpt_numpy/config.json')
    write_transformers('gpt2_transformers', 'GPT2LMHeadModel', config, max_shard_size='4KB')


#: by the names of the folders
WRITERS = {
    name: value
    for name, value in globals().items()
    if name.endswith(('_tensorflow', '_numpy', '_transformers')) and not name.startswith('write_')
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--originals', type=pathlib.Path, required=True)
    parser.add_argument('names', nargs='*', choices=[[], *WRITERS])
    args = parser.parse_args()
    if len(args.names) == 1:
        WRITERS[args.names[0]](args.originals.resolve())
        return
    for name in args.names or WRITERS:  # each in its process: they define the same flags
        command = [sys.executable, __file__, '--originals', str(args.originals), name]
        subprocess.run(command, check=True, env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})


if __name__ == '__main__':
    main()
