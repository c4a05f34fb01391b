"""One step of fine-tuning a BERT base classifier (forward, backward, clipping, Adam with decoupled
weight decay): ours beside each installed peer's, in turn, as ratios."""

from inference import VOCAB_SIZE, gluonnlp_block, make_batch, torch_model
from side_by_side import (
    Case,
    Contender,
    add_flags,
    bert_flops,
    gluon_step,
    measure,
    our_update,
    parse_shapes,
    report,
    run,
    torch_step,
)

OPTIONS = {'learning_rate': 2e-5, 'wd': 0.01}


def make_labelled(shape):
    """`make_batch`, and a label for each row."""
    import numpy as np

    return (*make_batch(VOCAB_SIZE, shape), np.random.RandomState(1).randint(0, 2, shape[0]))


def _gluon_step(loss_of, update):
    """``prepare`` for Gluon: `loss_of` takes the arrays of `make_labelled`."""
    import mxnet as mx

    def prepare(shape):
        batch = make_labelled(shape)
        return gluon_step(lambda: loss_of(*(mx.nd.array(array) for array in batch)), update)

    return prepare


def ours(options):
    """Our classifier, as scripts/finetune_classifier.py trains it."""
    from bert import BertConfig, BertForSequenceClassification

    block = BertForSequenceClassification(BertConfig(num_hidden_layers=options.layers))
    block.initialize()
    block.cast(options.precision)
    block.hybridize(static_alloc=True)
    return _gluon_step(block, our_update(block, 'bertadam', OPTIONS))


def gluonnlp(options):
    """GluonNLP's classifier, as its own script trains it."""
    import gluonnlp
    import mxnet as mx

    block = gluonnlp.model.BERTClassifier(gluonnlp_block(options.layers), dropout=0.1)
    block.classifier.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True)
    criterion = mx.gluon.loss.SoftmaxCELoss()
    criterion.hybridize(static_alloc=True)
    optimizer = gluonnlp.optimizer.BERTAdam(**OPTIONS)
    parameters = block.collect_params()
    trainer = mx.gluon.Trainer(parameters, optimizer, update_on_kvstore=False)
    trained = [p for p in parameters.values() if p.grad_req != 'null']

    def loss_of(words, types, length, labels):
        return criterion(block(words, types, length), labels).mean()

    def update():
        trainer.allreduce_grads()
        gluonnlp.utils.clip_grad_global_norm(trained, 1)
        trainer.update(1)

    return _gluon_step(loss_of, update)


def transformers(options):
    """The classifier of transformers with torch's AdamW; in bfloat16 by autocast."""
    import numpy as np
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = torch_model(options.layers).train()
            self.dropout = torch.nn.Dropout(self.bert.config.hidden_dropout_prob)
            self.dense = torch.nn.Linear(self.bert.config.hidden_size, 2)

        def forward(self, words, mask, types):
            pooled = self.bert(words, attention_mask=mask, token_type_ids=types).pooler_output
            return self.dense(self.dropout(pooled))

    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)

    def prepare(shape):
        words, types, length, labels = make_labelled(shape)

        def compute():
            mask = (np.arange(words.shape[1]) < length[:, None]).astype(np.int64)
            with torch.autocast('cpu', torch.bfloat16, enabled=options.precision == 'bfloat16'):
                scores = model(*(torch.from_numpy(x) for x in (words, mask, types)))
                return torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))

        return torch_step(model, optimizer, compute)

    return prepare


PEERS = [
    Contender('gluonnlp', gluonnlp, ('gluonnlp',)),
    Contender('torch+transformers', transformers, ('torch', 'transformers')),
]


def main(argv=None):
    parser = add_flags(__doc__, rounds=10, seconds=60)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--precision', choices=('float32', 'bfloat16'), default='float32')
    args = parser.parse_args(argv)
    cases = [
        Case(f'{batch}x{length}', (batch, length), 3 * bert_flops(args.layers, batch, length))
        for batch, length in parse_shapes(args.shapes)
    ]
    # GluonNLP has no bfloat16
    peers = [each for each in PEERS if args.precision == 'float32' or each.make is not gluonnlp]
    measured = measure([Contender('ours', ours)], peers, cases, args)
    report(
        f'BERT base fine-tuning step, {args.layers} layers, {args.precision}', measured, args.json
    )


if __name__ == '__main__':
    run(main)
