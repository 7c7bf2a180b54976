"""Fifty kills with SIGKILL at random moments: of drivers, islands, hosts, other workers, raylets,
Ray's own server, and container engines.

Run apart from the tests: ``scripts/bench survival [--kills 50] [--sandbox auto|plain|docker]
[--only driver,host] [--engine DIR] [--seed N]``; the tests run a sample. The plain sandbox also
shows what was executed twice. ``--sandbox docker`` starts an engine of its own (as root), unless
`--engine` names the folder of one that ``scripts/engine up`` started. The bar: 0 attempts lost, 0
made again, nothing left after 60 s, and the lineage of the uninterrupted run.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "containers"))
sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from survival import BASE, ENGINE, ENGINE_VICTIM, VICTIMS, Blow, Campaign
from words import serving, write_suite


@contextmanager
def engine_of(given: argparse.Namespace, folder: Path) -> Iterator[Path | None]:
    """The folder of a container engine with the tests' base image, where one is wanted."""
    if given.sandbox != "docker":
        yield None
        return
    from base_image import make_base_image

    from milo.rollout.docker.engine import connect

    place = given.engine or folder / "engine"
    subprocess.run([ENGINE, "up", str(place)], check=True, stdout=subprocess.DEVNULL)
    try:
        make_base_image(connect(f"unix://{place}/docker.sock").api, BASE)
        yield place
    finally:
        if given.engine is None:
            subprocess.run([ENGINE, "down", str(place)], check=True)


def drawn(given: argparse.Namespace, rng: random.Random) -> list[str]:
    """Whom to kill: each kind about as often, in random order."""
    kinds = given.only.split(",") if given.only else list(VICTIMS)
    if given.sandbox == "docker" and not given.only:
        kinds.append(ENGINE_VICTIM)
    victims = [kinds[number % len(kinds)] for number in range(given.kills)]
    rng.shuffle(victims)
    return victims


def show(blows: list[Blow], campaign: Campaign, seconds: float) -> None:
    """One line a kind, then the sums."""
    for victim, count in sorted(Counter(blow.victim for blow in blows).items()):
        on = sum(blow.went_on for blow in blows if blow.victim == victim)
        print(f"{victim:<12}{count:3} killed, {on:3} times the run went on by itself")
    for blow in blows:
        for left in blow.left:
            print(f"left after {blow.victim} at {blow.at}: {left}")
    left = sum(len(blow.left) for blow in blows)
    told = f"{campaign.repeated} made again"
    if campaign.sandbox != "plain":
        told = "made again: this sandbox does not tell"
    print(
        f"{len(blows)} kills in {campaign.replays} replays of {campaign.total} attempts, "
        f"{seconds:.0f} s: {campaign.lost} lost, {told}, {left} things left, "
        f"{campaign.different} lineages that differ"
    )


def main() -> None:
    """Record, replay under kills, compare, print; fails where the bar is not met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--sandbox", default="auto", choices=("auto", "plain", "docker"))
    options.add_argument("--only", default="", help="kinds of victims, with commas")
    options.add_argument("--engine", type=Path)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    rng, begun = random.Random(given.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name, serving() as server:
        folder = Path(name)
        folder.chmod(0o711)  # harnesses that run as another user note that they were run
        with engine_of(given, folder) as engine:
            campaign = Campaign(
                folder=folder,
                server=server,
                suite=write_suite(folder / "suite", image=BASE if engine else "debian:12"),
                rng=rng,
                sandbox=given.sandbox,
                engine=engine,
                tell=lambda line: print(f"{time.monotonic() - begun:6.0f} s  {line}", flush=True),
            )
            campaign.record()
            campaign.tell(f"the recording has {campaign.total} attempts")
            campaign.strike(drawn(given, rng))
    show(campaign.blows, campaign, time.monotonic() - begun)
    bad = campaign.lost, campaign.repeated, campaign.different
    assert not any(bad) and not any(blow.left for blow in campaign.blows)


if __name__ == "__main__":
    main()
