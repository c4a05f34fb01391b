"""Write expected.* in tests/fixtures/pytorchic: what Pytorchic BERT's scripts make of its files.

    python tests/oracle/make_pytorchic_fixtures.py CHECKOUT

CHECKOUT is a folder of dhlee347/pytorchic-bert (fefcbd9). Needs torch. Of classify.py an epoch has
one batch, so that its random order doesn't matter. The parameters that both trainings begin with
are drawn from N(0, 0.5), so that gradients are clipped.
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import types

import numpy as np
import torch
from oracle_files import FIXTURES

FOLDER = FIXTURES / 'pytorchic'


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


def path_of(name):
    return str(FOLDER / name)


def saved(folder):
    """Name -> arrays of all files of a training."""
    return {
        path.name: {name: value.numpy() for name, value in torch.load(path).items()}
        for path in sorted(pathlib.Path(folder).glob('*.pt'))
    }


def main():
    classify, models, pretrain = load(os.path.abspath(sys.argv[1]))
    config = models.Config.from_json(path_of('model.json'))
    pretrained = torch.load(path_of('pretrained.pt'))
    common = {'model_cfg': path_of('model.json'), 'vocab': path_of('vocab.txt')}
    common['data_parallel'] = False
    arrays, said = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        data = {'data_file': path_of('mrpc.tsv'), 'max_len': 20}
        data['train_cfg'] = path_of('classify.json')
        classify.main(**common, **data, model_file=path_of('classifier.pt'), save_dir=folder)
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
    state = {k[12:]: v for k, v in pretrained.items() if k.startswith('transformer')}
    model.transformer.load_state_dict(state)
    ids = torch.randint(5, config.vocab_size, (3, 9), generator=torch.manual_seed(2))
    types_, mask = (ids > 14).long(), torch.arange(9)[None] < torch.tensor([[9], [4], [7]])
    arrays['input/ids'], arrays['input/types'] = ids.numpy(), types_.numpy()
    arrays['input/lengths'] = mask.sum(1).numpy()
    arrays['transformer'] = model.transformer(ids, types_, mask.long()).detach().numpy()
    model = pretrain.BertModel4Pretrain(config)
    model.load_state_dict(pretrained)
    places = torch.tensor([[1, 2], [3, 0], [5, 6]])
    words, pairs = model(ids, types_, mask.long(), places)
    arrays['input/places'] = places.numpy()
    arrays['words'], arrays['pairs'] = words.detach().numpy(), pairs.detach().numpy()

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
    with tempfile.TemporaryDirectory() as folder:
        pretrain.main(
            **common,
            train_cfg=path_of('pretrain.json'),
            data_file=path_of('corpus.txt'),
            max_len=32,
            max_pred=5,
            model_file=path_of('pretrained.pt'),
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
    np.savez_compressed(FOLDER / 'expected.npz', **arrays)
    (FOLDER / 'expected.json').write_text(json.dumps(said, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
