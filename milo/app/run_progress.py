"""How far a run directory has come, for whoever starts, resumes or skips it."""

from __future__ import annotations

from enum import StrEnum


class RunProgress(StrEnum):
    """How far a run directory has come."""

    ABSENT = "absent"
    STOPPED = "stopped"
    FINISHED = "finished"
