"""What a harness finds installed: the folder of its packages, shown to it read-only.

The folder stands at its own path of the host in every sandbox, with ``bin/`` (a Python environment)
and ``node_modules/``; ``MILO_PACKAGES`` names it. The first word of the harness's own commands is
looked up there. The search path stays the task's own: what the harness runs for the task finds the
task's programs, not the harness's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.harness import Manifest
from milo.core.packages import Packages
from milo.core.ports import Command, EnvironmentSpec, FindPackages

VARIABLE = "MILO_PACKAGES"
PROGRAMS = ("bin", "node_modules/.bin")


class PackagesMissing(MiloError):
    """This host has not the packages that a harness names."""


def nothing_installed(packages: Packages) -> Path | None:
    """The finder of a host that holds no packages."""
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Equipment:
    """The packages of one harness on this host. Without any, everything stays as it is.

    `reserves` says that its programs reserve far more address space than they use, as those of
    Node and its kin do.
    """

    folder: Path | None = None
    reserves: bool = False

    @classmethod
    def of(cls, manifest: Manifest, find: FindPackages) -> Equipment:
        """Raises `PackagesMissing` where this host has not what the manifest names."""
        packages = manifest.packages
        if not packages:
            return cls()
        folder = find(packages)
        if folder is None:
            raise PackagesMissing(
                f"harness {manifest.name} needs {packages}, which this host has not installed "
                f"(`milo seed add DIR` there, DIR being the harness)"
            )
        return cls(folder=folder, reserves=bool(packages.npm))

    def shown(self, spec: EnvironmentSpec) -> EnvironmentSpec:
        """The environment with the packages in it."""
        if self.folder is None:
            return spec
        addresses = spec.limits_addresses and not self.reserves
        return replace(spec, folders=(*spec.folders, self.folder), limits_addresses=addresses)

    def started(self, command: Command) -> Command:
        """The command with its program looked up among the packages, which it is told of."""
        if self.folder is None:
            return command
        first, *rest = command.argv
        found = self._program(first)
        env = {**command.env, VARIABLE: str(self.folder)}
        return replace(command, argv=(found, *rest), env=env)

    def _program(self, word: str) -> str:
        if self.folder is None or "/" in word:
            return word
        places = (self.folder / place / word for place in PROGRAMS)
        return next((str(place) for place in places if place.exists()), word)
