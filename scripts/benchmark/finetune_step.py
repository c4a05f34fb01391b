"""One step of fine-tuning a BERT base classifier (forward, backward, clipping, Adam with decoupled
weight decay): ours beside each installed peer's, in one run, as ratios."""

import sys

import model_zoo  # isort: skip  sets MXNet's threads before it loads
import gluonnlp
import mxnet as mx
import numpy as np
from inference import gluonnlp_block, torch_model
from side_by_side import bert_flops, installed, parse_shapes, report, time_in_turn

import model_zoo.optimizer  # noqa: F401  registers bertadam
from bert import BertConfig, BertForSequenceClassification
from model_zoo.app import cli
from model_zoo.optimizer import clip_grad_global_norm

OPTIONS = {'learning_rate': 2e-5, 'wd': 0.01}


def our_step(config):
    """Our classifier, as scripts/finetune_classifier.py trains it."""
    block = BertForSequenceClassification(config)
    block.initialize()
    block.hybridize(static_alloc=True)
    trainer = mx.gluon.Trainer(
        block.collect_params(), 'bertadam', dict(OPTIONS), update_on_kvstore=False
    )
    parameters = [p for p in block.collect_params().values() if p.grad_req != 'null']

    def step(words, types, length, labels):
        with mx.autograd.record():
            loss = block(*(mx.nd.array(x) for x in (words, types, length, labels)))
        loss.backward()
        trainer.allreduce_grads()
        clip_grad_global_norm(parameters, 1)
        trainer.update(1)
        mx.nd.waitall()

    return step


def gluonnlp_step(config):
    """GluonNLP's classifier, as its own script trains it."""
    block = gluonnlp.model.BERTClassifier(gluonnlp_block(config), dropout=0.1)
    block.classifier.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True)
    criterion = mx.gluon.loss.SoftmaxCELoss()
    criterion.hybridize(static_alloc=True)
    optimizer = gluonnlp.optimizer.BERTAdam(**OPTIONS)
    trainer = mx.gluon.Trainer(block.collect_params(), optimizer, update_on_kvstore=False)
    parameters = [p for p in block.collect_params().values() if p.grad_req != 'null']

    def step(words, types, length, labels):
        with mx.autograd.record():
            scores = block(*(mx.nd.array(x) for x in (words, types, length)))
            loss = criterion(scores, mx.nd.array(labels)).mean()
        loss.backward()
        trainer.allreduce_grads()
        gluonnlp.utils.clip_grad_global_norm(parameters, 1)
        trainer.update(1)
        mx.nd.waitall()

    return step


def torch_step(config):
    """The classifier of transformers with torch's AdamW."""
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = torch_model(config).train()
            self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
            self.dense = torch.nn.Linear(config.hidden_size, 2)

        def forward(self, words, mask, types):
            pooled = self.bert(words, attention_mask=mask, token_type_ids=types).pooler_output
            return self.dense(self.dropout(pooled))

    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)

    def step(words, types, length, labels):
        mask = (np.arange(words.shape[1]) < length[:, None]).astype(np.int64)
        scores = model(*(torch.from_numpy(x) for x in (words, mask, types)))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()

    return step


def main(argv=None):
    parser = cli.parser(__doc__)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--rounds', type=int, default=10, help='steps of each contender')
    parser.add_argument('--seconds', type=float, default=60, help='limit for one shape')
    parser.add_argument('--json', help='file for the figures')
    args = parser.parse_args(argv)
    config = BertConfig()
    contenders = {'ours': our_step(config), 'gluonnlp': gluonnlp_step(config)}
    if installed('torch', 'transformers'):
        contenders['torch+transformers'] = torch_step(config)
    rng = np.random.RandomState(0)
    rows = []
    for batch, length in parse_shapes(args.shapes):
        words = rng.randint(0, config.vocab_size, (batch, length))
        inputs = (words, np.zeros_like(words), np.full((batch,), length), rng.randint(0, 2, batch))
        calls = {
            name: lambda call=call, inputs=inputs: call(*inputs)
            for name, call in contenders.items()
        }
        times = time_in_turn(calls, args.rounds, args.seconds)
        rows.append((f'{batch}x{length}', 3 * bert_flops(config, batch, length), times))
    report('BERT base fine-tuning step, float32', rows, args.json)


if __name__ == '__main__':
    sys.exit(cli.run(main))
