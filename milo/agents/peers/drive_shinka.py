"""Drives ShinkaEvolve on the source of a harness, in Shinka's own environment.

Several source files are one program to it, with a comment line before each. One job at a time: MILO
runs the attempts of a candidate side by side, and one candidate after another. Novelty by
embeddings and the summaries of other models are off, for the run has one model.
"""

from __future__ import annotations

from pathlib import Path

from evaluate_shinka import MARKS
from milo_peer import Peer, bundled, started, with_end
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

WITHOUT_END = 10**5
"""Generations: MILO's limits end the run."""


def main(peer: Peer) -> None:
    """Run Shinka until it is ended."""
    first, last = MARKS
    Path("initial.py").write_text(f"{first}\n{with_end(bundled(peer.files))}{last}\n")
    place = peer.place
    evolution = EvolutionConfig(
        task_sys_msg=f"{peer.objective}\n\n{peer.background}",
        num_generations=WITHOUT_END,
        language="python",
        llm_models=[f"local/{place.model}@{place.base_url}/v1?api_key_env=MILO_TOKEN"],
        llm_dynamic_selection=None,
        meta_rec_interval=None,
        embedding_model=None,
        init_program_path="initial.py",
        results_dir="shinka",
        use_text_feedback=True,
    )
    runner = ShinkaEvolveRunner(
        evo_config=evolution,
        job_config=LocalJobConfig(
            eval_program_path=str(Path(__file__).with_name("evaluate_shinka.py"))
        ),
        db_config=DatabaseConfig(),
        max_evaluation_jobs=1,
        max_proposal_jobs=1,
    )
    runner.run()


if __name__ == "__main__":
    main(started())
