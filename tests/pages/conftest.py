"""A real headless Chromium, and runs for it to look at."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runs import toy, write_searched, write_synthetic

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def why_not() -> str:
    """What is missing for these tests; "" where nothing is."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed (pip install 'milo-harness[pages]')"
    return "" if CHROMIUM else "no chromium here (apt-get install chromium)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason where the browser is missing."""
    reason = why_not()
    here = Path(__file__).parent
    for item in items:
        if reason and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for a module's tests; its event loop must not run on under those of others."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without a sandbox of its own, since continuous integration runs as root.
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Watched:
    """A page whose console errors, exceptions and requests are kept."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def open(self, url: str) -> Any:
        """Load a page and wait until it has drawn the run."""
        self.page.goto(url)
        self.page.wait_for_selector("html[data-ready]")
        return self.page


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A fresh page on a desktop screen, in light."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_searched(tmp_path_factory.mktemp("searched") / "run")


@pytest.fixture(scope="session")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all four moves, grafts and speciated islands."""
    return write_synthetic(tmp_path_factory.mktemp("moved") / "run", 260)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run: enough of everything to look at, raw objectives too."""
    return write_synthetic(tmp_path_factory.mktemp("small") / "run", 70, toy)
