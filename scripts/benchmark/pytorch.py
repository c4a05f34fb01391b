"""Contenders on torch: transformers and sentence-transformers."""

import torch
from harness import threads
from inputs import FAMILIES, bert_feed, bert_sizes, labels, prompts, read_sentences

torch.set_num_threads(threads())


def encoder(options):
    """Return transformers' encoder with random weights."""
    import transformers

    sizes = {**bert_sizes(options), **FAMILIES[options.family]}
    config = transformers.AutoConfig.for_model(options.family, **sizes)
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config).eval()


def write_encoder(options):
    """Write the encoder that this project opens, too."""
    encoder(options).save_pretrained(options.encoder)


def forward(options, precision):
    """Run transformers' encoder."""
    model = encoder(options)
    if precision == 'int8':
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
    elif precision == 'bfloat16':
        model = model.bfloat16()

    def prepare(shape):
        feed = bert_feed(shape, options.family)
        feed = {name: torch.from_numpy(array) for name, array in feed.items()}

        @torch.inference_mode()
        def call():
            model(**feed)

        return call

    return prepare


def vectors(options, precision):
    """Compute sentence vectors with sentence-transformers."""
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
    """Generate greedily with transformers' GPT-2."""
    import transformers

    model = transformers.GPT2LMHeadModel.from_pretrained(options.gpt2).eval()
    if precision == 'bfloat16':
        model = model.bfloat16()
    model.generation_config.eos_token_id = None  # all texts continue after an end

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
    """Train a step of transformers' classifier with torch's AdamW; bfloat16 by autocast."""
    import transformers

    config = transformers.BertConfig(**bert_sizes(options))
    model = transformers.BertForSequenceClassification(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)

    def prepare(shape):
        feed = {name: torch.from_numpy(array) for name, array in bert_feed(shape).items()}
        feed['labels'] = torch.from_numpy(labels(shape))

        def step():
            with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bfloat16'):
                loss = model(**feed).loss
            loss.backward()
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
