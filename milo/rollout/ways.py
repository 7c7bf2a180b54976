"""What listens on a command's own loopback: the model's gateway, and the way to allowed hosts.

Sandboxes differ in how they get a listener in there, not in what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milo.core.ports import Command, EnvironmentSpec
from milo.core.task import Network, Reach
from milo.rollout.egress import PROXY_PORT, Allowed, Egress, proxy_variables
from milo.rollout.forward import Listener, Relay


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One of them: `socket` names its file where it isn't listened for on `port` directly."""

    socket: str
    port: int
    listener: Listener


def reach_of(spec: EnvironmentSpec, command: Command) -> Reach:
    """What a command may reach beside the gateway."""
    return spec.reach if command.reach is None else command.reach


def ways_of(spec: EnvironmentSpec, command: Command) -> tuple[Way, ...]:
    """The ways that are open to a command; nobody listens yet. Whoever asks closes them."""
    ways = []
    if command.gateway and spec.gateway_socket is not None:
        relay = Relay(spec.gateway_socket)
        ways.append(Way(socket="gateway.sock", port=spec.gateway_port, listener=relay))
    reach = reach_of(spec, command)
    if reach.network is Network.ALLOWLIST:
        proxy = Listener(Egress(Allowed(reach.hosts)).serve)
        ways.append(Way(socket="egress.sock", port=PROXY_PORT, listener=proxy))
    return tuple(ways)


def variables_of(spec: EnvironmentSpec, command: Command) -> Mapping[str, str]:
    """What tells a command of its ways beside the gateway."""
    allowlisted = reach_of(spec, command).network is Network.ALLOWLIST
    return proxy_variables() if allowlisted else {}


def launched(ways: tuple[Way, ...], script: str, folder: str) -> tuple[str, ...]:
    """The launcher's arguments that stand before a command, for sockets shown in a folder."""
    if not ways:
        return ()
    pairs = [part for way in ways for part in (str(way.port), f"{folder}/{way.socket}")]
    return ("-I", "-S", script, *pairs, "--")
