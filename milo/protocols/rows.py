"""A protocol's row as text for a terminal."""

from __future__ import annotations

from milo.protocols.evobench import EvoBenchRow
from milo.protocols.harnessopt import HarnessOptRow
from milo.protocols.table import columns


def harnessopt_text(row: HarnessOptRow) -> str:
    """The row under its head, what it rests on, and whether it says anything."""
    band = "unknown" if row.band is None else f"± {row.band:.3f}"
    lines = [
        f"HarnessOpt-Bench protocol on {row.suite}, {row.model}: {row.cases} held-out cases, "
        f"K = {row.rounds}",
        "",
        *columns(
            [
                ("", "seed", "nominated", "gain", "band", "target tokens", "optimizer tokens"),
                (
                    row.method,
                    f"{row.seed_score:.3f}",
                    f"{row.nominated_score:.3f}",
                    f"{row.gain:+.3f}",
                    band,
                    f"{row.target_tokens:,}",
                    f"{row.optimizer_tokens:,}",
                ),
            ]
        ),
        "",
        "used: "
        + "; ".join(
            f"{split} {row.passes[split]:.2f} case passes, {row.calls[split]} calls"
            for split in row.passes
        ),
        f"nominated {row.nominated} of {row.run}",
    ]
    lines.append(_resolved(row))
    return "\n".join([*lines, *_exceeded(row.exceeded)])


def evobench_text(row: EvoBenchRow) -> str:
    """The row under its head, and the budget that it used."""
    names = tuple(row.domains)
    return "\n".join(
        [
            f"Evo-Bench protocol on {row.suite}, {row.model}",
            "",
            *columns(
                [
                    ("", *names, "Overall", "over the seed", "AnytimeVal"),
                    (
                        row.method,
                        *(f"{row.domains[name]:.1f}" for name in names),
                        f"{row.overall:.1f}",
                        f"{row.gain:+.1f}",
                        f"{row.anytime:.1f}",
                    ),
                ]
            ),
            "",
            f"used: {row.iterations} of {row.iteration_budget} iterations, {row.steps} steps, "
            f"{row.hours:.2f} hours",
            f"froze {row.frozen} of {row.run}",
            *_exceeded(row.exceeded),
        ]
    )


def _resolved(row: HarnessOptRow) -> str:
    if row.band is None:
        return "one round tells no band: the gain is unresolved"
    verb = "is resolved" if row.is_resolved else "is unresolved: not more than the band"
    return f"the gain {verb}"


def _exceeded(exceeded: tuple[str, ...]) -> list[str]:
    return [f"does not count, a cap was not kept: {reason}" for reason in exceeded]
