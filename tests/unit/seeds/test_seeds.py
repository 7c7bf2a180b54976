"""The seeds that come with MILO: small, honest, and working against a scripted model."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import milo
from milo.agents.operators.catalogue import operator_named
from milo.core.harness import Harness

SEEDS = Path(milo.__file__).parent / "seeds"
NAMES = ("bare", "tool_loop", "plan_act")
SCRIPT = "```bash\necho 42 > out.txt\n```"
PROGRAM = "Sure.\n```python\nopen('out.txt', 'w').write(str(6 * 7))\n```"
STACK = ("act-in-python", "see-files", "worked-examples", "verify-outputs", "vote", "greedy")


class Model(BaseHTTPRequestHandler):
    """Answers with the server's replies in order, the last one again and again."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)  # type: ignore[attr-defined]
        replies = self.server.replies  # type: ignore[attr-defined]
        content = replies.pop(0) if len(replies) > 1 else replies[0]
        data = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    server.requests, server.replies = [], []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attempt(
    harness: Path, server: ThreadingHTTPServer, folder: Path
) -> subprocess.CompletedProcess[str]:
    workspace = folder / "workspace"
    workspace.mkdir()
    (folder / "task.md").write_text("Write the answer to `out.txt`.")
    env = {
        "PATH": os.environ["PATH"],
        "MILO_TASK": str(folder / "task.md"),
        "MILO_MODEL": "m",
        "MILO_DEADLINE": str(time.time() + 100),
        "OPENAI_API_KEY": "token",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
    }
    return subprocess.run(
        [sys.executable, "-B", "-W", "error", str(harness / "main.py")],
        cwd=workspace,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_small_and_needs_the_standard_library_only(name: str) -> None:
    harness = Harness.from_dir(SEEDS / name)
    own = {path.removesuffix(".py") for path in harness.tree}
    lines = 0
    for path in harness.tree:
        if not path.endswith(".py"):
            continue
        lines += len(harness.tree.text(path).splitlines())
        for node in ast.walk(ast.parse(harness.tree.text(path))):
            if isinstance(node, ast.Import):
                assert all(a.name.split(".")[0] in sys.stdlib_module_names for a in node.names)
            if isinstance(node, ast.ImportFrom) and node.module not in own:
                assert (node.module or "").split(".")[0] in sys.stdlib_module_names
    assert lines <= 150 and harness.manifest.smoke


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_does_what_the_model_says(
    name: str, model: ThreadingHTTPServer, tmp_path: Path
) -> None:
    model.replies = [SCRIPT, SCRIPT, "DONE"]  # type: ignore[attr-defined]
    done = attempt(SEEDS / name, model, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "workspace" / "out.txt").read_text() == "42\n"
    calls = {"bare": 1, "tool_loop": 3, "plan_act": 2}[name]
    assert len(model.requests) == calls  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_with_a_stack_of_edits_still_works(
    name: str, model: ThreadingHTTPServer, tmp_path: Path
) -> None:
    tree = Harness.from_dir(SEEDS / name).tree
    for operator in (*STACK, "stop-when-done"):
        tree = operator_named(operator).child(tree) or tree
    tree.write_to(tmp_path / "harness")
    model.replies = [PROGRAM]  # type: ignore[attr-defined]
    done = attempt(tmp_path / "harness", model, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "workspace" / "out.txt").read_text() == "42"
    last = model.requests[-1]  # type: ignore[attr-defined]
    text = json.dumps(last["messages"])
    assert last["temperature"] == 0 and "Python program" in text and "Files in the folder" in text
