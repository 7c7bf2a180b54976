"""What a container is made from: its configuration in the engine's own words.

Nothing is granted by default: no network, no capabilities, no new privileges, a read-only system,
an ordinary user. A task's own image keeps a system that can be written, for such tasks install
and configure; where that image works as root, root has the rights that files, users and services
need, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from milo.core.task import Limits
from milo.rollout.commands import OPEN_FILES
from milo.rollout.docker.engine import EngineFacts
from milo.rollout.docker.leash import PLACE, SCRIPT

MEBIBYTE = 1024 * 1024
HELPERS = 2
"""Processes of ours in each container, beside the task's: the first, and who holds the leash."""
ROOT_RIGHTS = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"),
    *("NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE"),
)
"""Of the engine's own default MKNOD, NET_RAW, SETPCAP and SETFCAP are missing."""
SCRATCH_OPTIONS = "rw,nosuid,nodev,exec,mode=1777"
HOST_NAME = "task"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One container to be made.

    `binds` show host folders by their place inside, writable where the flag says so; `volumes` are
    places that the image wants apart, each made anew; `user` is empty for the image's own. A
    `sealed` system is read-only; /tmp and the volumes are new and empty at every start.
    """

    image: str
    labels: Mapping[str, str]
    limits: Limits
    binds: Mapping[str, tuple[str, bool]]
    user: str = ""
    sealed: bool = True
    root_rights: bool = False
    network: str = "none"
    volumes: tuple[str, ...] = ()


def create_arguments(shape: Shape, facts: EngineFacts) -> dict[str, Any]:
    """The arguments of the engine's ``create_container``."""
    host: dict[str, Any] = {
        "Binds": [
            f"{source}:{place}:{'rw' if writable else 'ro'}"
            for place, (source, writable) in shape.binds.items()
        ],
        "Mounts": [] if shape.sealed else [_volume(p, shape.labels) for p in shape.volumes],
        "NetworkMode": shape.network,
        "ReadonlyRootfs": shape.sealed,
        "CapDrop": ["ALL"],
        "CapAdd": list(ROOT_RIGHTS) if shape.root_rights else [],
        "SecurityOpt": ["no-new-privileges"],
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
        **limits_of(shape.limits, facts),
    }
    if shape.sealed:
        scratch = f"{SCRATCH_OPTIONS},size={shape.limits.storage_mb * MEBIBYTE}"
        host["Tmpfs"] = dict.fromkeys(("/tmp", *shape.volumes), scratch)
    return {
        "image": shape.image,
        "entrypoint": ["/bin/sh", f"{PLACE}/{SCRIPT}"],
        "command": [],
        "user": shape.user or None,
        "labels": dict(shape.labels),
        "working_dir": "/",
        "hostname": HOST_NAME,
        "stdin_open": False,
        "healthcheck": {"test": ["NONE"]},
        "host_config": host,
    }


def _volume(place: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A volume without a name, which goes with its container; named by labels in case it can't."""
    return {"Type": "volume", "Target": place, "VolumeOptions": {"Labels": dict(labels)}}


def limits_of(limits: Limits, facts: EngineFacts) -> dict[str, Any]:
    """The engine's words for what one environment may use, as far as it can enforce it."""
    memory, size = limits.memory_mb * MEBIBYTE, limits.storage_mb * MEBIBYTE
    ulimits = [("core", 0), ("nofile", OPEN_FILES), ("fsize", size)]
    words: dict[str, Any] = {
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits],
        "ShmSize": min(memory, size),
    }
    if facts.memory:
        words["Memory"] = memory
    if facts.memory and facts.swap:
        words["MemorySwap"] = memory  # none beside the memory
    if facts.pids:
        words["PidsLimit"] = limits.processes + HELPERS
    if facts.cpu:
        # More than the host has is refused, and would bind nothing.
        words["NanoCpus"] = int(min(limits.cpus, facts.cores) * 1e9)
    return words
