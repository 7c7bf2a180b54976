"""Drives OpenEvolve on the source of a harness, in OpenEvolve's own environment.

Several source files are one program to it, with a comment line before each. One worker: MILO runs
the attempts of a candidate side by side, and one candidate after another.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from milo_peer import Peer, bundled, started
from openevolve import OpenEvolve
from openevolve.config import Config

WITHOUT_END = 10**6
"""Iterations: MILO's limits end the run."""

PATIENCE_S = 30 * 24 * 3600
"""How long an evaluation may take: as long as the run."""

CALL_S = 900


def config(peer: Peer) -> Config:
    """OpenEvolve's defaults, but for what belongs to the run."""
    place = peer.place
    return Config.from_dict(
        {
            "random_seed": peer.seed % 2**32,
            "file_suffix": ".py",
            "language": "python",
            "llm": {
                "api_base": f"{place.base_url}/v1",
                "api_key": place.token,
                "timeout": CALL_S,
                "models": [{"name": place.model, "weight": 1.0}],
            },
            "prompt": {"system_message": f"{peer.objective}\n\n{peer.background}"},
            "database": {"random_seed": peer.seed % 2**32},
            "evaluator": {
                "timeout": PATIENCE_S,
                "max_retries": 0,
                "cascade_evaluation": False,
                "parallel_evaluations": 1,
            },
        }
    )


def main(peer: Peer) -> None:
    """Run OpenEvolve until it is ended."""
    program = Path("program.py").resolve()
    program.write_text(bundled(peer.files))
    search = OpenEvolve(
        initial_program_path=str(program),
        evaluation_file=str(Path(__file__).with_name("evaluate_openevolve.py")),
        config=config(peer),
        output_dir=str(Path("openevolve").resolve()),
    )
    asyncio.run(search.run(iterations=WITHOUT_END))


if __name__ == "__main__":
    main(started())
