"""Where added seeds lie, and how a run finds them by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from platformdirs import user_data_path

from milo.core.harness import MANIFEST_NAME

SEEDS = "MILO_SEEDS"
"""The environment variable that names another folder for seeds."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def seeds_folder() -> Path:
    """Where added seeds lie."""
    named = os.environ.get(SEEDS, "")
    return Path(named).resolve() if named else user_data_path("milo") / "seeds"


def added(name: str) -> Path | None:
    """The directory of an added seed; None where there is none of this name."""
    path = seeds_folder() / name
    return path if NAME.fullmatch(name) and (path / MANIFEST_NAME).is_file() else None
