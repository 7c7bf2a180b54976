"""Programs that stand in a mutator's workspace: they run where milo is not."""

from __future__ import annotations

from pathlib import Path

from milo.core.tree import File

EVIDENCE_TOOL, SMOKE_TOOL = "milo-evidence", "milo-smoke"
SOURCES = {EVIDENCE_TOOL: "milo_evidence.py", SMOKE_TOOL: "milo_smoke.py"}


def tool_files() -> dict[str, File]:
    """The programs by the name under which they stand in the brief's folder."""
    folder = Path(__file__).parent
    return {name: File((folder / source).read_bytes(), True) for name, source in SOURCES.items()}
