"""The Docker sandbox keeps the sandbox contract on a real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from milo.core.ports import Sandbox
from milo.testing.sandbox_cases import SandboxCases


class TestDocker(SandboxCases):
    @pytest.fixture(autouse=True)
    def _maker(self, make_docker: Callable[[Path], Sandbox]) -> None:
        self.make = make_docker

    def make_sandbox(self, root: Path) -> Sandbox:
        return self.make(root)
