"""The server in several processes, or on several machines: a deployment of Ray Serve."""

import logging
import signal
import sys
import threading

from ...errors import InputError
from ...util.ray_cluster import join_cluster

_log = logging.getLogger(__name__)

NAME = 'zoo'
#: Requests that a replica has under way, on average, before there is another one.
TARGET_REQUESTS = 16


def serve_on_ray(build, address, settings, replicas, cpus, cluster):
    """Serve replicas of an application on Ray until SIGTERM or Ctrl-C.

    Parameters
    ----------
    build : callable
        ``build()`` makes the application in each replica; Ray must be able to pickle it.
    address : (str, int)
        Host and port at which the cluster's head answers.
    settings : Settings
        Those of the application.
    replicas : (int, int)
        Fewest and most; between them the load decides.
    cpus : float
        Processors of a replica.
    cluster : str
        Address of a Ray cluster; 'local' starts one on this machine, as long as the server.
    """
    ray, is_started = join_cluster(cluster, shows_logs=True)
    from ray import serve

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # Ray's would abort the process
    have = ray.cluster_resources().get('CPU', 0)
    if not 1 <= replicas[0] <= replicas[1] or replicas[0] * cpus > have:
        shape = f'{replicas[0]} to {replicas[1]} replicas of {cpus:g} processors'
        raise InputError(f'{shape} are not possible: Ray has {have:g} processors')
    if serve.status().proxies:  # its address would stay, and its models go
        raise InputError('Ray Serve runs on this cluster already: end it with `serve shutdown`')
    http = {'host': address[0], 'port': address[1]}
    logs = {'log_level': 'WARNING', 'enable_access_log': False}
    serve.start(proxy_location='HeadOnly', http_options=http, logging_config=logs)
    scaling = {'min_replicas': replicas[0], 'max_replicas': replicas[1]}
    threads = {'OMP_NUM_THREADS': str(max(1, int(cpus)))}
    deployment = serve.deployment(
        serve.ingress(lambda: build())(),
        max_ongoing_requests=settings.queue_size,
        graceful_shutdown_timeout_s=settings.timeout,
        autoscaling_config={**scaling, 'target_ongoing_requests': TARGET_REQUESTS},
        ray_actor_options={'num_cpus': cpus, 'runtime_env': {'env_vars': threads}},
    )
    try:
        serve.run(deployment.bind(), name=NAME, route_prefix='/')
        _log.info('serving on http://%s:%d', *address)
        threading.Event().wait()
    except RuntimeError as error:
        raise InputError(f'no replica can be started: {error}; its log says why') from error
    finally:
        serve.shutdown()
        if is_started:
            ray.shutdown()
