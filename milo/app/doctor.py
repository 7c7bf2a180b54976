"""`milo doctor`: what this machine offers a run, and what to do about what it lacks.

Nothing is changed or spent. Each probe answers with one `Finding`; a probe of something outside
(an engine, an interpreter) has a time limit of its own.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from milo.app.face import provider_keys
from milo.app.machine import sandbox_finding_text, weights_found

GIB = 1 << 30
PROBE_S = 60.0


class Level(StrEnum):
    """How bad a finding is; only ``fail`` makes a run impossible."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One line: what was looked at, what was found, and what to do about it ("" for nothing)."""

    name: str
    level: Level
    found: str
    advice: str = ""


def examine(environ: Mapping[str, str], folder: Path | None = None) -> tuple[Finding, ...]:
    """Every finding about this machine; `folder` is where runs would be written."""
    where = folder or Path.cwd()
    probes: tuple[Callable[[], Finding], ...] = (
        lambda: python_finding(sys.version_info[:3]),
        ray_finding,
        sandbox_finding,
        lambda: engine_finding(environ),
        git_finding,
        lambda: keys_finding(environ),
        weights_finding,
        lambda: disk_finding(shutil.disk_usage(where).free),
        lambda: memory_finding(_free_memory()),
        lambda: files_finding(resource.getrlimit(resource.RLIMIT_NOFILE)),
        lambda: cores_finding(len(os.sched_getaffinity(0))),
        lambda: package_finding("wandb", "tracking", "pip install wandb, or tracking=off"),
    )
    return tuple(probe() for probe in probes)


def verdict(findings: Iterable[Finding]) -> bool:
    """Whether a run is impossible here."""
    return any(finding.level is Level.FAIL for finding in findings)


def render(findings: Sequence[Finding]) -> str:
    """The findings as aligned lines, advice below what it mends, and the conclusion."""
    width = max(len(finding.name) for finding in findings)
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.level:<5} {finding.name:<{width}}  {finding.found}")
        if finding.advice:
            lines.append(f"{'':<5} {'':<{width}}  -> {finding.advice}")
    lines.append(
        "A run is impossible here until what fails is mended."
        if verdict(findings)
        else "A run is possible here."
    )
    return "\n".join(lines)


def python_finding(version: tuple[int, int, int]) -> Finding:
    """Python 3.11 and 3.12 are supported."""
    found = f"{'.'.join(map(str, version))} ({platform.machine()})"
    if (3, 11) <= version[:2] <= (3, 12):
        return Finding("python", Level.OK, found)
    return Finding("python", Level.FAIL, found, "use Python 3.11 or 3.12")


def ray_finding() -> Finding:
    """Ray, imported in a process of its own: an installed package may still not load."""
    script = "import ray; print(ray.__version__)"
    code, text = run_probe([sys.executable, "-c", script])
    if code == 0:
        return Finding("ray", Level.OK, text)
    return Finding("ray", Level.FAIL, f"does not import: {text}", "pip install 'ray>=2.50,<3'")


def sandbox_finding() -> Finding:
    """The strongest local sandbox that works here."""
    strong, text = sandbox_finding_text()
    if strong:
        return Finding("sandbox", Level.OK, text)
    return Finding(
        "sandbox",
        Level.WARN,
        text,
        "apt-get install bubblewrap; without it harnesses run less isolated",
    )


def engine_finding(environ: Mapping[str, str]) -> Finding:
    """A Docker engine is optional: everything runs in the local sandbox without one."""
    address = environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not address.startswith("unix://"):
        return _no_engine("DOCKER_HOST names none of this machine: unix://… is wanted")
    if not Path(address.removeprefix("unix://")).exists():
        return _no_engine(f"{address} is not there")
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5, environment=dict(environ))
        try:
            version = client.version().get("Version", "?")
        finally:
            client.close()
    except DockerException as error:
        return _no_engine(str(error).splitlines()[0][:100])
    return Finding("docker", Level.OK, f"engine {version}")


def _no_engine(reason: str) -> Finding:
    return Finding("docker", Level.OK, f"no engine ({reason})", "none needed: the local sandbox")


def git_finding() -> Finding:
    """Candidates are kept in a git repository."""
    if shutil.which("git") is None:
        return Finding("git", Level.FAIL, "not found", "apt-get install git")
    code, text = run_probe(["git", "--version"])
    level = Level.OK if code == 0 else Level.FAIL
    return Finding("git", level, text, "" if code == 0 else "apt-get install --reinstall git")


def keys_finding(environ: Mapping[str, str]) -> Finding:
    """Which providers' keys are set; never a value."""
    names = provider_keys(environ)
    if names:
        return Finding("provider keys", Level.OK, f"{', '.join(names)} set")
    return Finding(
        "provider keys", Level.OK, "none set", "none needed with model=local; else export one"
    )


def weights_finding() -> Finding:
    """The embedded model's server, and whether its weights are in the cache already."""
    if importlib.util.find_spec("xllamacpp") is None:
        return Finding(
            "embedded model", Level.WARN, "xllamacpp is not installed", "pip install xllamacpp"
        )
    cached, text = weights_found()
    if cached:
        return Finding("embedded model", Level.OK, text)
    return Finding(
        "embedded model", Level.OK, text, "fetched once, by the first run with model=local"
    )


def disk_finding(free: int) -> Finding:
    """Free bytes where runs are written."""
    found = f"{free / GIB:.1f} GiB free"
    if free < GIB // 2:
        return Finding("disk", Level.FAIL, found, "free at least 0.5 GiB")
    if free < 3 * GIB:
        return Finding("disk", Level.WARN, found, "a run, weights and Ray like to have 3 GiB")
    return Finding("disk", Level.OK, found)


def memory_finding(free: int) -> Finding:
    """Available bytes of memory."""
    found = f"{free / GIB:.1f} GiB available"
    if free < GIB // 2:
        return Finding("memory", Level.FAIL, found, "free at least 0.5 GiB")
    if free < 3 * GIB:
        return Finding(
            "memory", Level.WARN, found, "use a smaller cluster.slots, or model=local-small"
        )
    return Finding("memory", Level.OK, found)


def files_finding(limits: tuple[int, int]) -> Finding:
    """The soft and hard limit of open files; a run uses some for each attempt under way."""
    soft, hard = limits
    found = f"{soft} (at most {hard})"
    if soft != resource.RLIM_INFINITY and soft < 256:
        return Finding("open files", Level.FAIL, found, "ulimit -n 4096")
    if soft != resource.RLIM_INFINITY and soft < 1024:
        return Finding("open files", Level.WARN, found, "ulimit -n 4096")
    return Finding("open files", Level.OK, found)


def cores_finding(cores: int) -> Finding:
    """Cores that this process may use."""
    if cores < 2:
        return Finding(
            "cores", Level.WARN, str(cores), "use cluster.slots=1; a search will take its time"
        )
    return Finding("cores", Level.OK, str(cores))


def package_finding(name: str, role: str, advice: str) -> Finding:
    """An optional package."""
    try:
        return Finding(name, Level.OK, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, Level.OK, f"not installed (optional: {role})", advice)


def run_probe(argv: Sequence[str], seconds: float = PROBE_S) -> tuple[int, str]:
    """The exit code of a command and the last line it wrote; a code below 0 where it never ran."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {seconds:g} s"
    except OSError as error:
        return -1, str(error)
    lines = (done.stdout if done.returncode == 0 else done.stderr or done.stdout).splitlines()
    return done.returncode, lines[-1].strip() if lines else f"exit code {done.returncode}"


def _free_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)
