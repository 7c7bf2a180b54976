"""Both local sandboxes keep the sandbox contract, as far as this host lets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.core.errors import ConfigError
from milo.core.ports import Sandbox
from milo.rollout.local import choose
from milo.testing.sandbox_cases import SandboxCases


class TestBubblewrap(SandboxCases):
    def make_sandbox(self, root: Path) -> Sandbox:
        try:
            return choose("bubblewrap", root=root)
        except ConfigError as error:
            pytest.skip(str(error))


class TestPlain(SandboxCases):
    def make_sandbox(self, root: Path) -> Sandbox:
        return choose("plain", root=root)
