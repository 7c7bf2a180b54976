"""The local sandbox, with the shims that tasks of others need here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from reality_shims import FOLDER, LIBRARIES, Shimmed, make_site, why_not

from milo.rollout.bubblewrap import BubblewrapHost, BubblewrapSandbox
from milo.rollout.local import probe
from milo.testing.sandbox_cases import let_others_pass

collect_ignore = ["fixtures"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python packages that the sandbox may see."""
    folder = tmp_path_factory.mktemp("test_site")
    let_others_pass(folder)
    return make_site(folder / "site", *(LIBRARIES if os.environ.get(FOLDER) else ()))


@pytest.fixture
def shimmed(tmp_path: Path, site: Path) -> Shimmed:
    """Skips with the reason where it can't work."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    root = tmp_path / "scratch"
    root.mkdir()
    let_others_pass(root)
    host = probe(root, ())
    if not isinstance(host, BubblewrapHost):
        pytest.skip(host)
    return Shimmed(BubblewrapSandbox(host), site)
