"""Starts one command inside a sandbox and forwards loopback ports to unix sockets for it.

Stand-alone: run as ``python3 -I -S launcher.py PORT SOCKET … -- COMMAND…`` inside the sandbox, on
whatever Python is there (3.8 or later). It imports compiled modules only, for they start in no
time. It ends when the command ends, with the command's exit code (128 + n for signal n).
"""

from __future__ import annotations

import _socket
import posix
import select
import sys

CHUNK = 65536
NOT_FOUND = 127
READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
WAIT_MS = 50


class Pipe:
    """One direction of a connection: what was read from `source` and not yet written."""

    def __init__(self, source: _socket.socket, sink: _socket.socket) -> None:
        self.source = source
        self.sink = sink
        self.pending = b""
        self.ended = False
        self.shut = False

    def pump(self) -> None:
        """Move what can be moved now; passes a half-close on once all is written."""
        try:
            if not self.pending and not self.ended:
                self.pending = self.source.recv(CHUNK)
                self.ended = not self.pending
            if self.pending:
                self.pending = self.pending[self.sink.send(self.pending) :]
        except BlockingIOError:
            return
        except OSError:
            self.pending, self.ended = b"", True
        if self.ended and not self.pending and not self.shut:
            self.shut = True
            try:
                self.sink.shutdown(_socket.SHUT_WR)
            except OSError:
                return


class Connection:
    """A client's connection and its twin to the socket."""

    def __init__(self, client: _socket.socket, server: _socket.socket) -> None:
        self.ends = (client, server)
        self.pipes = (Pipe(client, server), Pipe(server, client))

    @property
    def done(self) -> bool:
        """Whether both directions have ended."""
        return all(pipe.shut for pipe in self.pipes)

    def wishes(self) -> list[tuple[int, int]]:
        """What each end waits for, as (descriptor, poll events)."""
        events = {end.fileno(): 0 for end in self.ends}
        for pipe in self.pipes:
            if pipe.pending:
                events[pipe.sink.fileno()] |= select.POLLOUT
            elif not pipe.ended:
                events[pipe.source.fileno()] |= select.POLLIN
        return [(fd, mask) for fd, mask in events.items() if mask]

    def pump(self) -> None:
        """Move both directions."""
        for pipe in self.pipes:
            pipe.pump()

    def close(self) -> None:
        """Close both ends."""
        for end in self.ends:
            end.close()


class Forwarder:
    """Accepts on a loopback port and moves what comes."""

    def __init__(self, port: int, path: str) -> None:
        self.path = path
        self.listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        self.listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(128)
        self.listener.setblocking(False)
        self.connections: list[Connection] = []

    def wishes(self) -> list[tuple[int, int]]:
        """What it waits for, as (descriptor, poll events)."""
        wishes = [(self.listener.fileno(), select.POLLIN)]
        for connection in self.connections:
            wishes += connection.wishes()
        return wishes

    def pump(self) -> None:
        """Take who waits, and move what can be moved."""
        self.accept()
        for connection in self.connections:
            connection.pump()
            if connection.done:
                connection.close()
        self.connections = [c for c in self.connections if not c.done]

    def accept(self) -> None:
        """Take waiting clients; one is turned away where the socket can't be reached."""
        while True:
            try:
                fd, _ = self.listener._accept()  # type: ignore[attr-defined]
            except OSError:
                return
            client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, fd)
            server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                server.connect(self.path)
            except OSError:
                client.close()
                server.close()
                continue
            client.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            client.setblocking(False)
            server.setblocking(False)
            self.connections.append(Connection(client, server))


def turn(forwarders: list[Forwarder], wake: int) -> None:
    """Wait for something to move (or for `wake` to be readable) and move it."""
    poll = select.poll()
    for forwarder in forwarders:
        for fd, mask in forwarder.wishes():
            poll.register(fd, mask)
    if wake >= 0:
        poll.register(wake, select.POLLIN)
    poll.poll(None if wake >= 0 else WAIT_MS)
    for forwarder in forwarders:
        forwarder.pump()


def start(argv: list[str], forwarders: list[Forwarder]) -> int:
    """Fork and execute the command; its pid."""
    pid = posix.fork()
    if pid:
        return pid
    for forwarder in forwarders:
        forwarder.listener.close()
    error: OSError | None = None
    folders = [""] if "/" in argv[0] else ["/usr/local/bin/", "/usr/bin/", "/bin/"]
    for folder in folders:
        try:
            posix.execv(folder + argv[0], argv)
        except OSError as failed:
            error = failed
    posix.write(2, f"{argv[0]}: {error}\n".encode())
    posix._exit(NOT_FOUND)


def exit_code(status: int) -> int:
    """A wait status as a shell's exit code."""
    if posix.WIFSIGNALED(status):
        return 128 + posix.WTERMSIG(status)
    return posix.WEXITSTATUS(status)


def main(argv: list[str]) -> int:
    """Forward for the command's life; its exit code."""
    end = argv.index("--")
    forwarders = [Forwarder(int(argv[n]), argv[n + 1]) for n in range(0, end, 2)]
    pid = start(argv[end + 1 :], forwarders)
    try:
        wake = posix.pidfd_open(pid)
    except (AttributeError, OSError):
        wake = -1
    while True:
        done, status = posix.waitpid(pid, posix.WNOHANG)
        if done:
            return exit_code(status)
        turn(forwarders, wake)


if __name__ == "__main__":
    posix._exit(main(sys.argv[1:]))
