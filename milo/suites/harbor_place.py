"""Where a Harbor task takes place and how it is judged: `[environment]`, `[agent]`, `[verifier]`.

`[metadata.milo]` is ours: `processes`, `resolved_at`, `reward_range`, and `any_base` for a task
whose Dockerfile only copies files, so that the image they are copied into does not matter.
Everything a sandbox must offer for it is named in the task's `needs`, so that one which can't
refuses the task instead of running another.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from milo.core.dockerfile import asks_of
from milo.core.errors import TaskError
from milo.core.task import Healthcheck, Image, Judging, Limits, Network, Reach, Setting
from milo.core.tree import FileTree
from milo.suites.dockerfile import Derived, derive
from milo.suites.dockerignore import build_context
from milo.suites.keys import Table, filled

NO_AGENT_TIMEOUT_S = 3600.0
"""Harbor sets no agent time limit by default; every attempt of ours has one."""
VERIFIER_TIMEOUT_S = 600.0
PROCESSES = 256
DOCKERFILE = "Dockerfile"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml")

POLICY = ("network_mode", "allowed_hosts")
ENVIRONMENT_KEYS = (
    *POLICY,
    *("build_timeout_sec", "docker_image", "os", "cpus", "memory_mb", "storage_mb", "gpus"),
    *("gpu_types", "tpu", "env", "workdir", "healthcheck", "mcp_servers", "skills_dir"),
    *("memory", "storage", "allow_internet"),
)
AGENT_KEYS = (*POLICY, "timeout_sec", "user")
VERIFIER_KEYS = (
    *POLICY,
    *("timeout_sec", "env", "user", "environment_mode", "environment", "collect"),
)
HEALTH_KEYS = (
    *("command", "interval_sec", "timeout_sec", "retries"),
    *("start_period_sec", "start_interval_sec"),
)
HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The start of a task, its limits, how it is judged, and what a sandbox must offer."""

    start: Derived
    setting: Setting
    limits: Limits
    judging: Judging
    needs: frozenset[str]


def place_of(folder: Path, config: Table, network: Network) -> Place:
    """Read where a task takes place; `network` is for a task that says nothing about it.

    Raises `TaskError` naming file and key.
    """
    environment, agent = config.table("environment"), config.table("agent")
    environment.check(ENVIRONMENT_KEYS)
    agent.check(AGENT_KEYS)
    start, image, needs = start_of(folder, environment)
    ours = config.table("metadata").table("milo")
    if ours.flag("any_base", False) and not start.obstacle and not user_of(agent):
        image = None
    everywhere = reach_of(environment) or Reach(network=network)
    reach = reach_of(agent) or everywhere
    limits = Limits(
        agent_timeout_s=agent.number("timeout_sec", NO_AGENT_TIMEOUT_S),
        verifier_timeout_s=config.table("verifier").number("timeout_sec", VERIFIER_TIMEOUT_S),
        processes=ours.whole("processes", PROCESSES),
        network=reach.network,
        **_sizes(environment),
    )
    setting = setting_of(environment, start, image)
    setting = replace(setting, hosts=reach.hosts, user=user_of(agent))
    judging, more = _judging(folder, config, limits, everywhere)
    told = judging.reach
    judging = replace(judging, reach=told if told != reach else None)
    needs |= more | special_needs(environment) | user_needs(agent)
    if told is not None and (told.network is Network.PUBLIC) != (reach.network is Network.PUBLIC):
        needs |= frozenset() if judging.separate else {"phase-network"}
    return Place(start=start, setting=setting, limits=limits, judging=judging, needs=needs)


def start_of(folder: Path, environment: Table) -> tuple[Derived, Image | None, frozenset[str]]:
    """The starting state as far as it can be had without an image, the image, and the needs."""
    context = build_context(folder / "environment")
    reference = environment.text("docker_image")
    composed = any((folder / "environment" / name).exists() for name in COMPOSE)
    needs = {"compose"} if composed else set()
    if not (reference or needs or DOCKERFILE in context):
        raise TaskError(
            f"task {folder}", "environment/Dockerfile or the key 'environment.docker_image'", "none"
        )
    image = Image(
        reference=reference,
        context=context,
        build_timeout_s=environment.number("build_timeout_sec", 600.0),
    )
    if DOCKERFILE in context:
        path = folder / "environment" / DOCKERFILE
        text = path.read_text(errors="replace")
        start = derive(text, context)
        needs |= build_needs(text, path) if start.obstacle else set()
        return start, image, frozenset(needs)
    return Derived(), image, frozenset(needs or {"image-pull"})


def build_needs(text: str, path: Path) -> set[str]:
    """What a sandbox must offer to build from a Dockerfile, with the line that asks for it."""
    asks = asks_of(text)
    return {"image-build", *(f"{ask.builder}: {path} line {ask.line}, {ask.words}" for ask in asks)}


def setting_of(environment: Table, start: Derived, image: Image | None) -> Setting:
    """The setting that an `[environment]` describes."""
    workdir = environment.text("workdir")
    if workdir and not workdir.startswith("/"):
        raise environment.error("workdir", "an absolute path", repr(workdir))
    return Setting(
        image=image,
        workdir=workdir or ("" if start.obstacle else start.workdir),
        gpus=environment.whole("gpus", 0, least=0),
        gpu_types=environment.words("gpu_types"),
        healthcheck=healthcheck_of(environment),
    )


def healthcheck_of(table: Table) -> Healthcheck | None:
    """The healthcheck of an `[environment]` or a step, if it has one."""
    health = table.table("healthcheck")
    if not health.raw:
        return None
    health.check(HEALTH_KEYS)
    if not health.text("command"):
        raise health.error("command", "a shell command", "none")
    return Healthcheck(
        command=health.text("command"),
        interval_s=health.number("interval_sec", 5.0, over=False),
        timeout_s=health.number("timeout_sec", 30.0),
        start_period_s=health.number("start_period_sec", 0.0, over=False),
        start_interval_s=health.number("start_interval_sec", 5.0, over=False),
        retries=health.whole("retries", 3),
    )


def reach_of(table: Table) -> Reach | None:
    """The network policy that a table states; None where it states none.

    An allowlist without hosts lets nothing through. `allow_internet` is the old form.
    """
    known = [network.value for network in Network]
    default = ""
    if "allow_internet" in table and "allowed_hosts" not in table:
        asked = table.flag("allow_internet", False)
        default = (Network.PUBLIC if asked else Network.NONE).value
    mode = table.one_of("network_mode", known, default) if "network_mode" in table else default
    if table.words("allowed_hosts") and mode != Network.ALLOWLIST:
        raise table.error("allowed_hosts", "network_mode = 'allowlist' beside it", repr(mode))
    return Reach(network=Network(mode), hosts=_hosts(table)) if mode else None


def user_of(table: Table) -> str:
    """Whom a phase asks to run as, by name or number; "" where it doesn't say."""
    user = table.raw.get("user", "")
    if isinstance(user, bool) or not isinstance(user, str | int):
        raise table.error("user", "a user's name or number", repr(user))
    return str(user)


def user_needs(table: Table) -> frozenset[str]:
    """What a sandbox must offer for a phase's user; root is what an image has by default."""
    return frozenset() if user_of(table) in ("root", "0", "") else frozenset({"users"})


def special_needs(environment: Table) -> frozenset[str]:
    """Requests that not every sandbox can fulfil."""
    needs = {key for key in ("tpu", "mcp_servers", "skills_dir") if environment.raw.get(key)}
    if environment.whole("gpus", 0, least=0):
        needs.add("gpu")
    needs.add(environment.text("os", "linux").lower())
    return frozenset(needs - {"linux"})


def _judging(
    folder: Path, config: Table, limits: Limits, everywhere: Reach
) -> tuple[Judging, frozenset[str]]:
    """How the task is judged, and what a sandbox must offer for it beyond the task's own needs."""
    verifier = config.table("verifier")
    verifier.check(VERIFIER_KEYS)
    env, missing = filled(verifier.texts("env"))
    solution_env, _ = filled(config.table("solution").texts("env"))
    needs = user_needs(verifier) | {f"variable {name}" for name in missing}
    needs |= {"verifier-collect"} if verifier.raw.get("collect") else set()
    if is_separate(verifier):
        judging, more = _apart(folder, verifier, limits, everywhere)
        needs |= more
    else:
        judging = Judging(reach=reach_of(verifier) or everywhere)
    user = user_of(verifier)
    return replace(judging, env=env, solution_env=solution_env, user=user), frozenset(needs)


def is_separate(verifier: Table) -> bool:
    """Whether a verifier runs apart: where it says so, or describes an environment of its own."""
    own = "environment" in verifier
    default = "separate" if own else "shared"
    mode = verifier.one_of("environment_mode", ("shared", "separate"), default)
    if own and mode == "shared":
        raise verifier.error("environment_mode", "'separate' beside [verifier.environment]", mode)
    return mode == "separate"


def _apart(
    folder: Path, verifier: Table, limits: Limits, everywhere: Reach
) -> tuple[Judging, frozenset[str]]:
    """A verifier in an environment of its own: an image it names, tests/Dockerfile, or a fresh
    copy of the task's. An image of its own holds the tests already."""
    environment = verifier.table("environment")
    environment.check(ENVIRONMENT_KEYS)
    own = "environment" in verifier
    reference = environment.text("docker_image")
    context = FileTree() if reference else build_context(folder / "tests")
    bundled = bool(reference) or DOCKERFILE in context
    reach = reach_of(verifier) or (reach_of(environment) if own else None) or everywhere
    sizes = _sizes(environment) if own else {}
    judged_in = replace(limits, network=reach.network, **sizes)
    image = Image(reference=reference, context=context) if bundled else None
    setting = setting_of(environment, Derived(), image) if own or bundled else None
    needs = special_needs(environment)
    if reference:
        needs |= {"image-pull"}
    elif bundled:
        needs |= build_needs(context.text(DOCKERFILE), folder / "tests" / DOCKERFILE)
    limits_apart = judged_in if judged_in != limits else None
    judging = Judging(
        limits=limits_apart, separate=True, setting=setting, bundled=bundled, reach=reach
    )
    return judging, needs


def _sizes(environment: Table) -> dict[str, Any]:
    """Memory, storage and processors, with Harbor's usual sizes where nothing is said."""
    return {
        "memory_mb": environment.size_mb("memory_mb", "memory", 2048),
        "storage_mb": environment.size_mb("storage_mb", "storage", 10_240),
        "cpus": environment.number("cpus", 1.0),
    }


def _hosts(table: Table) -> tuple[str, ...]:
    """Host names, ``*.`` patterns, addresses and CIDR ranges that an allowlist holds."""
    hosts = tuple(host.strip().lower().rstrip(".") for host in table.words("allowed_hosts"))
    for host in hosts:
        if not HOST.fullmatch(host) and not _is_address(host):
            raise table.error("allowed_hosts", "host names, addresses or CIDR ranges", repr(host))
    return hosts


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_network(host)
    except ValueError:
        return False
    return True
