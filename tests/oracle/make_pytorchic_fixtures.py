"""Write tests/fixtures/pytorchic: what Pytorchic BERT's scripts make of small files.

Needs torch, and as its argument the folder of a checkout of dhlee347/pytorchic-bert (fefcbd9).
"""

import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import types

import numpy as np
import torch

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures' / 'pytorchic'
ARRAYS = FIXTURES / 'expected.npz'
MODEL = {
    'dim': 16,
    'n_layers': 2,
    'n_heads': 2,
    'dim_ff': 24,
    'p_drop_hidden': 0.0,
    'p_drop_attn': 0.0,
    'max_len': 40,
}
# one batch an epoch of classify.py, so that its random order doesn't matter; total_steps ends it
CLASSIFY = {
    'seed': 3,
    'batch_size': 12,
    'lr': 2e-2,
    'n_epochs': 9,
    'warmup': 0.25,
    'save_steps': 2,
    'total_steps': 6,
}
PRETRAIN = {
    'seed': 5,
    'batch_size': 4,
    'lr': 1e-2,
    'n_epochs': 3,
    'warmup': 0.2,
    'save_steps': 5,
    'total_steps': 1000,
}
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
WORDS = (
    "the cat dog sat ran on under a mat tree red old ##s ##ing ##ed sing bark , . ' cafe n ##aive"
).split()
SAID = (
    "The cat dogs sat ran on under a mats tree, Red old singing barked caf\u00e9 naive xyz cat's"
).split()


def load(checkout):
    """The original's modules; of what they import but don't need here there are empty ones."""
    sys.path.insert(0, checkout)
    for name in ('fire', 'ipdb', 'tensorboardX', 'tensorflow'):
        sys.modules[name] = types.ModuleType(name)
    sys.modules['tensorboardX'].SummaryWriter = lambda log_dir: types.SimpleNamespace(
        add_scalars=lambda *args: None
    )
    import classify
    import models
    import pretrain

    del sys.modules['tensorflow']  # torch looks whether it is there
    return classify, models, pretrain


def sentence(draw):
    return ' '.join(draw.choice(SAID) for _ in range(draw.randint(3, 9))) + '.'


def write_files():
    draw = random.Random(1)
    shutil.rmtree(FIXTURES, ignore_errors=True)
    FIXTURES.mkdir(parents=True)

    def write(name, text):
        (FIXTURES / name).write_text(text, encoding='utf-8')

    write('vocab.txt', '\n'.join(SPECIAL + WORDS) + '\n')
    write('model.json', json.dumps({**MODEL, 'vocab_size': len(SPECIAL + WORDS)}, indent=2) + '\n')
    write('classify.json', json.dumps(CLASSIFY, indent=2) + '\n')
    write('pretrain.json', json.dumps(PRETRAIN, indent=2) + '\n')
    documents = ['\n'.join(sentence(draw) for _ in range(draw.randint(2, 12))) for _ in range(25)]
    write('corpus.txt', '\n\n'.join(documents) + '\n')
    rows = ['Quality\t#1 ID\t#2 ID\t#1 String\t#2 String']
    for number in range(12):
        first, label = sentence(draw), number % 2
        second = first if label else sentence(draw)
        rows.append(f'{label}\t{number}\t{number + 50}\t{first}\t{second}')
    write('mrpc.tsv', '\n'.join(rows) + '\n')


def initial(model, scale, path):
    """Set a model's parameters, larger than at random so that gradients are clipped; save them."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * scale)
    torch.save(model.state_dict(), path)


def saved(folder):
    """Name -> arrays of all files of a training."""
    return {
        path.name: {name: value.numpy() for name, value in torch.load(path).items()}
        for path in sorted(pathlib.Path(folder).glob('*.pt'))
    }


def main():
    classify, models, pretrain = load(os.path.abspath(sys.argv[1]))
    write_files()
    path = lambda name: str(FIXTURES / name)  # noqa: E731
    config = models.Config.from_json(path('model.json'))
    initial(classify.Classifier(config, 2), 0.5, path('classifier.pt'))
    initial(pretrain.BertModel4Pretrain(config), 0.5, path('pretrained.pt'))
    common = {'model_cfg': path('model.json'), 'vocab': path('vocab.txt'), 'data_parallel': False}
    arrays, said = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        data = {'data_file': path('mrpc.tsv'), 'max_len': 20, 'train_cfg': path('classify.json')}
        classify.main(**common, **data, model_file=path('classifier.pt'), save_dir=folder)
        files = saved(folder)
        said['classify'] = sorted(files)
        for name in ('model_steps_4.pt', 'model_steps_7.pt'):
            arrays.update({f'classify/{name}/{k}': v for k, v in files[name].items()})
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            trained = os.path.join(folder, 'model_steps_7.pt')
            classify.main(**common, **data, model_file=trained, mode='eval')
        said['accuracy'] = output.getvalue().splitlines()[-1]
        # the embeddings and layers of a pretraining alone
        model = classify.Classifier(config, 2)
        state = {
            k[12:]: v
            for k, v in torch.load(path('pretrained.pt')).items()
            if k.startswith('transformer')
        }
        model.transformer.load_state_dict(state)
        ids = torch.randint(5, config.vocab_size, (3, 9), generator=torch.manual_seed(2))
        types_, mask = (ids > 14).long(), torch.arange(9)[None] < torch.tensor([[9], [4], [7]])
        arrays['input/ids'], arrays['input/types'] = ids.numpy(), types_.numpy()
        arrays['input/lengths'] = mask.sum(1).numpy()
        arrays['transformer'] = model.transformer(ids, types_, mask.long()).detach().numpy()
        model = pretrain.BertModel4Pretrain(config)
        model.load_state_dict(torch.load(path('pretrained.pt')))
        places = torch.tensor([[1, 2], [3, 0], [5, 6]])
        words, pairs = model(ids, types_, mask.long(), places)
        arrays['input/places'] = places.numpy()
        arrays['words'], arrays['pairs'] = words.detach().numpy(), pairs.detach().numpy()
    with tempfile.TemporaryDirectory() as folder:
        batches, losses = [], []
        make, step = pretrain.SentPairDataLoader.__iter__, pretrain.train.Trainer.train

        def recording(self):
            for batch in make(self):
                batches.append([each.numpy() for each in batch])
                yield batch

        def listening(self, get_loss, *args):
            def loss(*inputs):
                value = get_loss(*inputs)
                losses.append(value.item())
                return value

            return step(self, loss, *args)

        pretrain.SentPairDataLoader.__iter__ = recording
        pretrain.train.Trainer.train = listening
        pretrain.main(
            **common,
            train_cfg=path('pretrain.json'),
            data_file=path('corpus.txt'),
            max_len=32,
            max_pred=5,
            model_file=path('pretrained.pt'),
            save_dir=folder,
        )
        files = saved(folder)
        said['pretrain'] = sorted(files)
        last = max(files, key=lambda name: int(name[12:-3]))
        for name in ('model_steps_5.pt', last):
            arrays.update({f'pretrain/{name}/{k}': v for k, v in files[name].items()})
        names = ('ids', 'types', 'mask', 'masked_ids', 'places', 'weights', 'is_next')
        for name, values in zip(names, zip(*batches)):
            arrays[f'batches/{name}'] = np.stack(values).astype(np.int32)
        arrays['losses'] = np.array(losses)
    np.savez_compressed(ARRAYS, **arrays)
    (FIXTURES / 'expected.json').write_text(json.dumps(said, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
