"""Serve models over HTTP.

    python serve.py sentiment=output_dir/sentiment/best_model all-MiniLM-L6-v2 --port 8000

A model is a folder or a name; requests use the folder's name, or NAME of NAME=MODEL. The server
speaks Hugging Face's inference payloads and OpenAI's embeddings and completions; it needs the extra
``serve``. Ctrl-C or SIGTERM ends it, after it has answered what it has accepted. With ``--ray`` (extra ``ray``) several processes run
the models, as many as the load needs.
"""

import contextlib
import dataclasses
import functools
import logging
import os

from model_zoo.app import cli
from model_zoo.app.arguments import add_fields
from model_zoo.app.engines import add_use_arguments
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.inference import pipeline, server

logger = logging.getLogger(__name__)

#: the settings that are flags as they are
LIMITS = [name for name in server.Settings.defaults() if name not in ('allowed_hosts', 'api_key')]
REPLICAS = {'min_replicas': 1, 'max_replicas': 4, 'replica_cpus': 1.0}


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('models', nargs='+', metavar='MODEL', help='folder or name, or NAME=MODEL')
    add('--host', default='127.0.0.1', help='0.0.0.0 serves other machines, too')
    add('--port', type=int, default=8000, help='0: any free port')
    add('--api_key', metavar='FILE', help='file that holds the key, or env:VARIABLE')
    add('--allowed_hosts', nargs='+', metavar='NAME', help='allowed names in the header Host, such '
        'as those that a proxy passes on; default: '
        'any, but only loopback names on loopback')  # fmt: skip
    add('--max_len', type=int, help='maximum number of tokens per text; longer texts are truncated')
    add('--batch_tokens', type=int, default=2048, help='maximum number of tokens per batch')
    add('--reload', action='store_true', help='reload a folder when its files change')
    add_use_arguments(parser)
    ray = parser.add_argument_group('several processes or machines').add_argument
    ray('--ray', nargs='?', const='', metavar='ADDRESS', help='run replicas of the models on Ray: '
        'on the cluster at this address, or on this machine')  # fmt: skip
    ray('--min_replicas', type=int, help='default: 1')
    ray('--max_replicas', type=int, help='maximum number of replicas under load; default: 4')
    ray('--replica_cpus', type=float, help='processors per replica; default: 1')
    add_fields(parser.add_argument_group(server.Settings.title), server.Settings, *LIMITS)
    args = parser.parse_args(argv)
    for name, default in REPLICAS.items():
        if getattr(args, name) is None:
            setattr(args, name, default)
        elif args.ray is None:
            raise InputError(f'--{name} needs --ray')
    for name in ('batch_tokens', *REPLICAS):
        if getattr(args, name) <= 0:
            raise InputError(f'--{name} is {getattr(args, name)}; it must be above 0')
    return args


def open_pipeline(model, options):
    """The pipeline of a model, ready for requests."""
    opened = pipeline(model, **options)
    opened.engine.settle()  # before requests wait
    return opened


@contextlib.contextmanager
def open_app(named, options, settings, is_reloading):
    """The application with the models of these names; while this is open, folders may change."""
    models = {}
    if options['engine'] != 'mxnet':
        logger.info("the port opens when all models are ready; '--engine mxnet' makes no files")
    for name, model in named.items():
        models[name] = open_pipeline(model, options)
        logger.info('%s: %s, from %s', name, models[name].task, model)
    app = server.build_app(models, settings)
    with contextlib.ExitStack() as stack:
        if is_reloading:
            folders = {name: model for name, model in named.items() if os.path.isdir(model)}
            reloader = server.Reloader(
                app.state.service.models, folders, lambda folder: open_pipeline(folder, options)
            )
            stack.enter_context(reloader)
        yield app


def main(argv=None):
    args = parse_arguments(argv)
    is_on_ray = args.ray is not None
    if is_on_ray:
        MissingExtraError.check('ray', 'ray')
    # before a model is opened
    MissingExtraError.check('serve', 'fastapi', 'prometheus_client', 'uvicorn')
    cli.setup_logging()
    settings = server.Settings(
        api_key=None if args.api_key is None else server.read_key(args.api_key),
        allowed_hosts=args.allowed_hosts,
        **{name: getattr(args, name) for name in LIMITS},
    )
    named, bound = server.name_models(args.models), server.bind(args.host, args.port)
    options = {
        'engine': args.engine, 'precision': args.precision, 'max_length': args.max_len,
        'batch_tokens': args.batch_tokens,
    }  # fmt: skip
    if is_on_ray:
        # replicas have other working folders; whoever asks them has been let in already
        named = {n: os.path.abspath(m) if os.path.exists(m) else m for n, m in named.items()}
        inner = dataclasses.replace(settings, api_key=None)
        opener = functools.partial(open_app, named, options, inner, args.reload)
        replicas = args.min_replicas, args.max_replicas
        server.serve_on_ray(opener, bound, settings, replicas, args.replica_cpus, args.ray)
        return
    with open_app(named, options, settings, args.reload) as app:
        server.serve(app, bound, settings.timeout)


if __name__ == '__main__':
    cli.run_script(main)
