"""Runs tasks whose images would be built from a registry and whose tests fetch their tools, here.

Shims on the path make `apt-get`, `curl` and `pip install` do nothing and `uvx` run a copy of the
pytest that runs these tests. The steps of a task's Dockerfile run inside the environment.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.ports import Command, Environment, EnvironmentSpec, Sandbox
from milo.core.tree import File, FileTree
from milo.rollout.system import find_python

FOLDER = "MILO_TB2_DIR"
"""Names the folder of fetched Terminal-Bench 2 tasks."""
PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
LIBRARIES = {
    "numpy": ("numpy",),
    "rdflib": ("rdflib", "pyparsing"),
}
"""Distributions that the tests of others need, by the module that says whether they are there."""
NOTHING = "#!/bin/sh\nexit 0\n"
PYTHON = """\
#!/bin/sh
PYTHONPATH={site} exec {python} "$@"
"""
UVX = """\
#!/bin/bash
# uvx -p VERSION -w PACKAGE … pytest [--ctrf FILE] ARGUMENTS
while [ "$1" != pytest ]; do shift; done
shift
kept=()
while [ $# -gt 0 ]; do
    if [ "$1" = --ctrf ]; then shift 2; else kept+=("$1"); shift; fi
done
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
exec python3 -m pytest -p no:cacheprovider "${kept[@]}"
"""
BUILD_S = 300.0


def why_not() -> str:
    """Why the shims can't work here; "" if they can."""
    says = subprocess.run(
        [find_python().executable, "-c", "import sysconfig; print(sysconfig.get_python_version())"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    own = sysconfig.get_python_version()
    return "" if says == own else f"the sandbox's python3 is {says}, these tests run on {own}"


def make_site(folder: Path, *libraries: str) -> Path:
    """A copy of pytest, and of libraries as far as they are installed, that every user can read."""
    for name in (*PYTEST, *(part for library in libraries for part in LIBRARIES[library])):
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        for file in files:
            if ".." not in file.parts and not {"tests", "__pycache__"} & set(file.parts):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), folder / file)
    return folder


def shims(site: Path) -> FileTree:
    """The programs that stand in for others."""
    python = PYTHON.format(site=site, python=find_python().executable)
    programs = {
        **{name: NOTHING for name in ("apt-get", "apt", "curl", "uv", "pip", "pip3")},
        **{name: python for name in ("python", "python3")},
        "uvx": UVX,
    }
    return FileTree({name: File(text.encode(), True) for name, text in programs.items()})


class Shimmed:
    """Implements `ports.Sandbox` on a local one: it builds by running the Dockerfile's steps."""

    def __init__(self, inner: Sandbox, site: Path) -> None:
        self._inner = inner
        self._site = site
        self.description = f"{inner.description}, with shims"
        self.capabilities = inner.capabilities | {"image-build"}

    async def open(self, spec: EnvironmentSpec) -> Environment:
        """An environment in which the steps have run."""
        image = spec.setting.image
        assert image is not None
        steps = instructions(image.context.text("Dockerfile"))
        places = {"/usr/local/bin": shims(self._site)}
        workdir = [rest for word, rest in steps if word == "WORKDIR"][-1]
        environment = await self._inner.open(
            replace(
                spec,
                workspace=FileTree(),
                mounts={**spec.mounts, **places, "/context": image.context},
                folders=(self._site,),
                setting=replace(spec.setting, workdir=workdir),
            )
        )
        argv = ("bash", "-c", script(steps))
        ended = await environment.run(Command(argv=argv, timeout_s=BUILD_S))
        if ended.code != 0:
            await environment.close()
            raise MiloError(f"the Dockerfile's steps failed: {ended.stderr[-500:]}")
        return environment

    async def reap(self, owner: str) -> int:
        """As the inner one does."""
        return await self._inner.reap(owner)


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Word and rest of every instruction."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines) + "\n")
    pairs = (line.strip().partition(" ") for line in whole.splitlines() if line.strip())
    return [(word.upper(), rest.strip()) for word, _, rest in pairs]


def script(steps: list[tuple[str, str]]) -> str:
    """The steps as a shell script; bases and what is only metadata are passed over."""
    rows = ["set -e"]
    for word, rest in steps:
        if word == "WORKDIR":
            rows.append(f"cd {rest}")
        elif word == "RUN":
            rows.append(f"( {rest}\n)")
        elif word == "ENV":
            rows.append(f"export {rest}")
        elif word == "COPY":
            *sources, target = rest.split()
            rows += [copying(source, target) for source in sources]
    return "\n".join(rows)


def copying(source: str, target: str) -> str:
    """As COPY does: a folder's content, or a file to a name or into a folder."""
    place = f"/context/{source.removeprefix('./').rstrip('/')}"
    return (
        f"if [ -d {place} ]; then mkdir -p {target} && cp -R {place}/. {target}/; "
        f"else cp {place} {target}; fi"
    )
