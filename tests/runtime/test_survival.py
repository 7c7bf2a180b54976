"""A sample of the kills that `scripts/bench survival` makes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from survival import Campaign
from words import serving, write_suite

from milo.testing.sandbox_cases import let_others_pass

pytestmark = pytest.mark.timeout(900)
VICTIMS = ("island", "host", "driver", "recorder")


def test_whatever_is_killed_nothing_is_lost_made_again_or_left_behind(tmp_path: Path) -> None:
    let_others_pass(tmp_path)  # harnesses that run as another user note that they were run
    with serving() as server:
        campaign = Campaign(
            folder=tmp_path,
            server=server,
            suite=write_suite(tmp_path / "suite"),
            rng=random.Random(4),
            sandbox="plain",
            rounds=2,
        )
        campaign.record()
        campaign.strike(VICTIMS)
    assert [blow.victim for blow in campaign.blows] == list(VICTIMS)
    assert not [blow for blow in campaign.blows if blow.left]
    assert campaign.lost == 0 and campaign.repeated == 0
    assert campaign.different == 0, "the lineage is not that of the recording"
    gone_on = {blow.victim for blow in campaign.blows if blow.went_on}
    assert gone_on >= {"island", "host"}, "islands and hosts are replaced"
