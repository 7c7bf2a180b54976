"""What processes of a run leave on a machine when they are killed, and how it is removed.

Folders for sockets and logs lie with the temporary files, everything else with the sandbox; both
carry the run's label and their maker's name, so that only the dead's are taken.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from milo.app.sandboxes import choose_sandbox
from milo.core.plan import ClusterPlan
from milo.rollout.scratch import make_folder, reap_dead, reap_folders, scratch_root


def owner_of(run: Path) -> str:
    """What a run leaves on this machine is labelled with; the same at every resume."""
    return f"{run.name}-{hashlib.sha256(str(run).encode()).hexdigest()[:8]}"


def temporary_folder(owner: str) -> Path:
    """A folder of the owner's for sockets and logs, which only this user sees."""
    return make_folder(Path(tempfile.gettempdir()), owner, shared=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftovers:
    """Implements the runtime's `Sweeper`: picklable, and apart from everything else of a run."""

    cluster: ClusterPlan
    owner: str

    async def sweep(self) -> int:
        """Remove what dead processes of the run left, and their folders where they were another
        run's; how many things.

        Raises `MiloError` where the sandbox can't be had any more; folders go all the same.
        """
        count = 0
        try:
            count += await choose_sandbox(self.cluster).reap(self.owner)
        finally:
            for root in {scratch_root(), Path(tempfile.gettempdir())}:
                count += await asyncio.to_thread(reap_folders, root, self.owner)
                count += await asyncio.to_thread(reap_dead, root)
        return count
