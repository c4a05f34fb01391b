"""The same work in eight threads at once."""

import threading

THREADS = 8
TIMEOUT = 120  # a deadlock fails the test


def together(results):
    """``results(number)`` of eight threads, in order of their numbers."""
    found, errors, start = {}, [], threading.Barrier(THREADS)

    def work(number):
        try:
            start.wait(TIMEOUT)
            found[number] = results(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[n], daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not errors
    assert not any(thread.is_alive() for thread in threads), 'they wait for each other'
    return [found[number] for number in range(THREADS)]
