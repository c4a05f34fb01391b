"""Contenders on torch: transformers, sentence-transformers, pytorch-pretrained-bert."""

import inspect

import torch
from harness import threads
from inputs import (
    bert_feed,
    bert_sizes,
    prompts,
    read_sentences,
    training_batches,
    transfo_xl_sizes,
)

torch.set_num_threads(threads())


def bert(options):
    """Return transformers' BERT with random weights."""
    import transformers

    return transformers.BertModel(transformers.BertConfig(**bert_sizes(options))).eval()


def forward(options, precision):
    """BERT of transformers."""
    model = bert(options)
    if precision == 'int8':
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
    elif precision == 'bfloat16':
        model = model.bfloat16()

    def prepare(shape):
        feed = {name: torch.from_numpy(array) for name, array in bert_feed(shape).items()}

        @torch.inference_mode()
        def call():
            model(**feed)

        return call

    return prepare


def vectors(options, precision):
    """Sentence vectors of sentence-transformers."""
    from sentence_transformers import SentenceTransformer, models

    encoder = models.Transformer(options.model, max_seq_length=options.max_len)
    pooling = models.Pooling(encoder.get_embedding_dimension(), 'mean')
    model = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device='cpu')
    if precision == 'bfloat16':
        model = model.bfloat16()
    sentences = read_sentences(options)

    def prepare(count):
        return lambda: model.encode(sentences[:count], convert_to_tensor=True).float().numpy()

    return prepare


def generation(options, precision):
    """Greedy generation by transformers' GPT-2."""
    import transformers

    model = transformers.GPT2LMHeadModel.from_pretrained(options.gpt2).eval()
    if precision == 'bfloat16':
        model = model.bfloat16()
    model.generation_config.eos_token_id = None  # all continue after an end of text

    def prepare(shape):
        words = torch.from_numpy(prompts(shape, options.vocab_size))

        @torch.inference_mode()
        def call():
            length = {'max_new_tokens': options.new_tokens, 'pad_token_id': 0}
            mask = torch.ones_like(words)
            result = model.generate(words, attention_mask=mask, do_sample=False, **length)
            return result[:, words.shape[1] :].tolist()

        return call

    return prepare


def training(options, precision):
    """A step of transformers' model with torch's AdamW; bfloat16 by autocast."""
    import transformers

    if options.task == 'gpt2':
        config = transformers.GPT2Config(vocab_size=options.vocab_size, n_layer=options.layers)
        model = transformers.GPT2LMHeadModel(config)
    else:
        is_classifier = options.task == 'classifier'
        config = transformers.BertConfig(**bert_sizes(options))
        head = 'BertForSequenceClassification' if is_classifier else 'BertForPreTraining'
        model = getattr(transformers, head)(config)
    cross_entropy = torch.nn.functional.cross_entropy

    def pretraining_loss(words, types, positions, ids, labels):
        """Return the loss, from the scores of the masked words only, as in this project."""
        outputs = model.bert(words, attention_mask=torch.ones_like(words), token_type_ids=types)
        masked = outputs.last_hidden_state[torch.arange(len(words))[:, None], positions]
        scores, pairs = model.cls(masked, outputs.pooler_output)
        return cross_entropy(scores.flatten(0, 1), ids.flatten()) + cross_entropy(pairs, labels)

    def loss_of(words, *rest):
        if options.task == 'gpt2':
            return model(words, labels=words).loss
        types, length, *rest = rest
        if options.task == 'pretraining':
            return pretraining_loss(words, types, *rest)
        mask = (torch.arange(words.shape[1]) < length[:, None]).long()
        with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bfloat16'):
            return model(words, mask, types, labels=rest[0]).loss

    return _steps(options, model, loss_of)


def original_training(options, precision):
    """A step of pytorch-pretrained-bert's GPT-2 or Transformer-XL."""
    import pytorch_pretrained_bert as original

    if options.task == 'gpt2':
        config = original.GPT2Config(options.vocab_size, n_layer=options.layers)
        model = original.GPT2LMHeadModel(config)
        return _steps(options, model, lambda words, _: model(words, lm_labels=words))
    torch.Tensor.byte = torch.Tensor.bool  # the type of masks that today's torch expects
    sizes = transfo_xl_sizes(options)
    vocab_size = sizes.pop('vocab_size')
    known = inspect.signature(original.TransfoXLConfig).parameters
    config = original.TransfoXLConfig(vocab_size, **{k: sizes[k] for k in sizes if k in known})
    model, memories = original.TransfoXLLMHeadModel(config), {}  # a memory for each shape

    def loss_of(words, labels):
        losses, memories[words.shape] = model(words, labels, memories.get(words.shape))
        return losses.mean()

    return _steps(options, model, loss_of)


def _steps(options, model, loss_of):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)

    def prepare(shape):
        rows = training_batches(options, shape)

        def step():
            loss_of(*map(torch.from_numpy, next(rows))).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()

        return step

    return prepare


def serve(folder, port):
    """Serve a classifier by transformers' pipeline, with the waiting requests as a batch."""
    import asyncio
    import contextlib

    import transformers
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    pipeline = transformers.pipeline('text-classification', folder, top_k=None)
    queue = asyncio.Queue()

    async def answer(request):
        future = asyncio.get_running_loop().create_future()
        await queue.put(((await request.json())['inputs'], future))
        return JSONResponse(await future)

    async def work():
        while True:
            waiting = [await queue.get()]
            while len(waiting) < 64 and not queue.empty():
                waiting.append(queue.get_nowait())
            texts = [text for texts, _ in waiting for text in texts]
            options = {'batch_size': len(texts), 'truncation': True}
            results = await asyncio.to_thread(pipeline, texts, **options)
            for texts, future in waiting:
                future.set_result(results[: len(texts)])
                del results[: len(texts)]

    @contextlib.asynccontextmanager
    async def running(app):
        task = asyncio.create_task(work())
        yield
        task.cancel()

    app = Starlette(routes=[Route('/models/model', answer, methods=['POST'])], lifespan=running)
    uvicorn.run(app, port=int(port), log_level='warning')
