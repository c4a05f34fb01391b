"""What a server grants a connection: time to send a request and to read the answer, and a place.

uvicorn waits for ever for the end of a request and for a client that doesn't read, and with its
parser httptools it keeps headers of any length.
"""

import resource

__all__ = ['guarded']

MOST_HEAD = 1 << 16  # bytes of a request before its body


def guarded(protocol, seconds=30.0, most=1000):
    """One of uvicorn's classes of HTTP connections, with limits.

    Parameters
    ----------
    protocol : type
        Such as ``uvicorn.protocols.http.auto.AutoHTTPProtocol``.
    seconds : float
        In which a request must have arrived, and in which a client must have read a part of the
        answer that fills the buffers.
    most : int
        Number of connections above which each new one closes the oldest that has no whole request.
        It is at most half of the files that the process may open.

    Returns
    -------
    type
    """
    most = min(most, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))

    class Guarded(protocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            self._head, self._begin = 0, None
            self._arrival = self._reading = None  # timers
            self._await_request()
            if len(self.connections) > most:
                unfinished = [each for each in self.connections if each._begin is not None]
                min(unfinished, key=lambda each: each._begin).transport.abort()

        def data_received(self, data):
            if self._has_no_request():
                self._head += len(data)
            super().data_received(data)
            if self._has_no_request():
                self._await_request()
                if self._head > MOST_HEAD:
                    self.transport.abort()
            elif self.cycle.more_body:
                self._head = 0
            else:
                self._head = 0
                self._end_waiting()

        def _has_no_request(self):
            return self.cycle is None or self.cycle.response_complete

        def _await_request(self):
            if self._begin is None:
                self._begin = self.loop.time()
                self._arrival = self.loop.call_later(seconds, self.transport.abort)

        def _end_waiting(self):
            if self._begin is not None:
                self._arrival.cancel()
                self._begin = self._arrival = None

        def pause_writing(self):
            super().pause_writing()
            self._reading = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self):
            super().resume_writing()
            self._end_reading()

        def _end_reading(self):
            if self._reading is not None:
                self._reading.cancel()
                self._reading = None

        def connection_lost(self, error):
            self._end_waiting()
            self._end_reading()
            super().connection_lost(error)

    return Guarded
