"""Serve models over HTTP.

    python serve.py sentiment=output_dir/sentiment/best_model all-MiniLM-L6-v2 --port 8000

A model is a folder or a name; requests use the folder's name, or NAME of NAME=MODEL. The server
speaks Hugging Face's inference payloads and OpenAI's embeddings and completions; it needs the extra
``serve``. Ctrl-C or SIGTERM ends it, after it has answered the accepted requests. With ``--ray``
(extra ``ray``) Ray Serve runs the models in several processes, more under a higher load.
"""

import functools
import ipaddress
import logging
import os

import model_zoo
from model_zoo.app import cli
from model_zoo.app.arguments import add_fields, add_use_arguments, check_at_least_one
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.inference import server

logger = logging.getLogger(__name__)

#: the settings that are flags without changes
LIMITS = [name for name in server.Settings.defaults() if name not in ('allowed_hosts', 'api_key')]
OF_RAY = 'min_replicas', 'max_replicas', 'replica_cpus'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('models', nargs='+', metavar='MODEL', help='folder or name, or NAME=MODEL')
    add('--host', default='127.0.0.1', help='0.0.0.0 serves other machines, too')
    add('--port', type=int, default=8000, help='0: any free port')
    add('--api_key', metavar='FILE', help='file that holds the key, or env:VARIABLE')
    hosts = 'names that the header Host may have; default: any, but only loopback ones on loopback'
    add('--allowed_hosts', nargs='+', metavar='NAME', help=hosts)
    add('--max_length', type=int, help='in tokens; longer texts are truncated')
    parser.add_aliases('max_length', 'max_len')
    add('--batch_tokens', type=int, default=2048, help='maximum number of tokens per batch')
    add_use_arguments(parser)
    ray = parser.add_argument_group('several processes or machines').add_argument
    where = 'run replicas of the models on Ray: at this address, or on this machine'
    ray('--ray', nargs='?', const='', metavar='ADDRESS', help=where)
    ray('--min_replicas', type=int, help='default: 1')
    ray('--max_replicas', type=int, help='maximum number of replicas under load; default: 4')
    ray('--replica_cpus', type=float, help='processors per replica; default: 1')
    add_fields(parser.add_argument_group(server.Settings.title), server.Settings, *LIMITS)
    args = parser.parse_args(argv)
    for name in OF_RAY if args.ray is None else ():
        if name in args.given:
            raise InputError('needs `ray`', field=name)
    check_at_least_one(args, 'batch_tokens')
    return args


def open_app(named, options, settings, later=()):
    """Open models; return the application, which opens those whose names are in `later`."""

    def open_model(name):
        pipeline = model_zoo.pipeline(named[name], **options)
        logger.info('%s: %s, from %s', name, pipeline.task, named[name])
        return pipeline

    models = {name: open_model(name) for name in named if name not in later}
    later = {name: functools.partial(open_model, name) for name in later}
    return server.build_app(models, settings, later)


def main(argv=None):
    args = parse_arguments(argv)
    if args.ray is not None:
        MissingExtraError.check('ray', 'ray')
    # before a model is opened
    MissingExtraError.check('serve', 'fastapi', 'prometheus_client', 'uvicorn')
    cli.setup_logging()
    bound = server.bind(args.host, args.port)
    host, port = bound.getsockname()[:2]
    hosts = args.allowed_hosts
    if ipaddress.ip_address(host).is_loopback:  # pages of other names may not use it
        hosts = ['127.0.0.1', 'localhost', '[::1]', args.host, *(hosts or ())]
    elif args.api_key is None:
        logger.warning('all who reach %s can use the models; `api_key` asks for a key', args.host)
    key, limits = args.api_key, {name: vars(args)[name] for name in LIMITS}
    key = None if key is None else server.read_key(key)
    settings = server.Settings(api_key=key, allowed_hosts=hosts, **limits)
    named = server.name_models(args.models)
    names = 'engine', 'precision', 'max_length', 'batch_tokens'
    options = {name: vars(args)[name] for name in names}
    if args.ray is not None:
        # replicas have other working folders
        named = {n: os.path.abspath(m) if os.path.exists(m) else m for n, m in named.items()}
        build = functools.partial(open_app, named, options, settings)
        replicas, cpus = (args.min_replicas or 1, args.max_replicas or 4), args.replica_cpus or 1.0
        address, cluster = (args.host, port), args.ray or 'local'
        bound.close()  # Ray binds it
        server.serve_on_ray(build, address, settings, replicas, cpus, cluster)
        return
    from model_zoo.opening import locate

    _, *later = named  # it answers when the first model is open
    for name in later:  # a wrong name is an error at once
        locate(named[name], weights=None, vocab=False, exported=True)
    server.serve(open_app(named, options, settings, later), bound, settings.timeout)


if __name__ == '__main__':
    cli.run_script(main)
