"""The Ray cluster that this process uses."""

import os

from ..errors import InputError, MissingExtraError

__all__ = ['join_cluster']


def join_cluster(address='local', store_bytes=None, shows_logs=False):
    """Use a Ray cluster, unless this process uses one already.

    Workers of a cluster of this machine alone run at the same priority as other processes, and
    nothing of it listens at other addresses than 127.0.0.1.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` or ``ray://HOST:PORT`` of the cluster; 'auto' for the one that this machine
        belongs to, or 'local' for a new one of this machine alone. To an address that is given, Ray
        sends its token only if the environment has ``RAY_AUTH_MODE=token``.
    store_bytes : int, optional
        Of memory for the objects of a new cluster.
    shows_logs : bool
        Whether what the workers write is shown here.

    Returns
    -------
    module
        Ray.
    bool
        Whether this call has joined the cluster, and the caller has to leave it by
        ``ray.shutdown()``.

    Raises
    ------
    MissingExtraError
        If Ray isn't installed.
    InputError
        If there is no such cluster.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError.of('ray', 'ray') from error
    if ray.is_initialized():
        return ray, False
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')  # which Ray sends to its makers
    os.environ.setdefault('RAY_worker_niceness', '0')  # by default others go before its workers
    options = {'address': address, 'log_to_driver': shows_logs}
    options['logging_level'] = 'WARNING' if shows_logs else 'ERROR'
    if address == 'local':
        options.update(include_dashboard=False, _node_ip_address='127.0.0.1')
        if store_bytes is not None:
            options['object_store_memory'] = store_bytes
    try:
        ray.init(**options)
    except Exception as error:  # ConnectionError, ValueError, RuntimeError or gRPC's
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # a traceback of the server's, of which the last line has the cause
        cause = ' '.join(dict.fromkeys([lines[0], lines[-1]]))
        raise InputError(
            f'`ray` {address}: no Ray cluster can be reached ({cause}); start one, set '
            "RAY_AUTH_MODE=token if it asks for Ray's token, or give 'local' for a cluster of this "
            'machine alone'
        ) from error
    return ray, True
