"""Fifty kills with SIGKILL at random moments: of drivers, islands, hosts, other workers, raylets,
Ray's own server, and container engines.

Run apart from the tests: ``scripts/bench survival [--kills 50] [--sandbox auto|plain|docker]
[--only driver,host] [--lanes 2] [--seed N]``; the tests run a sample. The plain sandbox also shows
what was executed twice. ``--sandbox docker`` starts engines of its own (as root). Each lane records
a run and kills replays of it, beside the others: most of the time is waiting. The bar: 0 attempts
lost, 0 made again, nothing left after 60 s, and the lineage of the uninterrupted run.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "containers"))
sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from survival import BASE, ENGINE, ENGINE_VICTIM, VICTIMS, Campaign
from words import serving, write_suite

Tell = Callable[[str], None]


@contextmanager
def engine_of(sandbox: str, folder: Path) -> Iterator[Path | None]:
    """The folder of a container engine with the tests' base image, where one is wanted."""
    if sandbox != "docker":
        yield None
        return
    from base_image import make_base_image

    from milo.rollout.docker.engine import connect

    place = folder / "engine"
    subprocess.run([ENGINE, "up", str(place)], check=True, stdout=subprocess.DEVNULL)
    try:
        make_base_image(connect(f"unix://{place}/docker.sock").api, BASE)
        yield place
    finally:
        subprocess.run([ENGINE, "down", str(place)], check=True)


def drawn(given: argparse.Namespace, rng: random.Random) -> list[str]:
    """Whom to kill: each kind about as often, in random order."""
    kinds = given.only.split(",") if given.only else list(VICTIMS)
    if given.sandbox == "docker" and not given.only:
        kinds.append(ENGINE_VICTIM)
    victims = [kinds[number % len(kinds)] for number in range(given.kills)]
    rng.shuffle(victims)
    return victims


def show(campaigns: Sequence[Campaign], seconds: float) -> None:
    """One line a kind, then the sums."""
    blows = [blow for campaign in campaigns for blow in campaign.blows]
    for victim, count in sorted(Counter(blow.victim for blow in blows).items()):
        on = sum(blow.went_on for blow in blows if blow.victim == victim)
        print(f"{victim:<12}{count:3} killed, {on:3} times the run went on by itself")
    for blow in blows:
        for left in blow.left:
            print(f"left after {blow.victim} at {blow.at}: {left}")
    left = sum(len(blow.left) for blow in blows)
    told = f"{sum(campaign.repeated for campaign in campaigns)} made again"
    if campaigns[0].sandbox != "plain":
        told = "made again: this sandbox does not tell"
    print(
        f"{len(blows)} kills in {sum(c.replays for c in campaigns)} replays of "
        f"{campaigns[0].total} attempts, {seconds:.0f} s: {sum(c.lost for c in campaigns)} lost, "
        f"{told}, {left} things left, {sum(c.different for c in campaigns)} lineages that differ"
    )


def lane(folder: Path, sandbox: str, victims: Sequence[str], seed: int, tell: Tell) -> Campaign:
    """Record a run and kill replays of it until all victims are dead."""
    folder.mkdir(0o711)  # harnesses that run as another user note that they were run
    with serving() as server, engine_of(sandbox, folder) as engine:
        campaign = Campaign(
            folder=folder,
            server=server,
            suite=write_suite(folder / "suite", image=BASE if engine else "debian:12"),
            rng=random.Random(seed),
            sandbox=sandbox,
            engine=engine,
            tell=lambda line: tell(f"{folder.name}: {line}"),
        )
        campaign.record()
        campaign.tell(f"the recording has {campaign.total} attempts")
        campaign.strike(victims)
    return campaign


def main() -> None:
    """Record, replay under kills, compare, print; fails where the bar is not met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--sandbox", default="auto", choices=("auto", "plain", "docker"))
    options.add_argument("--only", default="", help="kinds of victims, with commas")
    options.add_argument("--lanes", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    victims, begun = drawn(given, random.Random(given.seed)), time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.lanes) as pool:
        Path(name).chmod(0o711)
        lanes = [
            pool.submit(
                lane,
                Path(name) / f"lane{number}",
                given.sandbox,
                victims[number :: given.lanes],
                given.seed + number,
                tell,
            )
            for number in range(given.lanes)
        ]
        campaigns = [one.result() for one in lanes]
    show(campaigns, time.monotonic() - begun)
    bad = [campaign.lost or campaign.repeated or campaign.different for campaign in campaigns]
    assert not any(bad) and not any(blow.left for c in campaigns for blow in c.blows)


if __name__ == "__main__":
    main()
