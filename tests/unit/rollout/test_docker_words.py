"""What the Docker sandbox says and understands without an engine: scripts, streams, names."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError

from milo.core.errors import ConfigError
from milo.core.task import Limits
from milo.rollout.capture import Capture
from milo.rollout.docker.attached import Frames
from milo.rollout.docker.choose import NOT_SEEN, counts_as_we, seen_root
from milo.rollout.docker.engine import Engine, EngineFacts, connect, facts_of
from milo.rollout.docker.labels import is_abandoned, labels
from milo.rollout.docker.leash import HEAD, script_of
from milo.rollout.docker.pull import split_reference
from milo.rollout.docker.shape import Shape, create_arguments
from milo.rollout.folder import leads_out
from milo.rollout.maker import maker_name

INFO = {"ServerVersion": "20.10", "MemoryLimit": True, "SwapLimit": True, "PidsLimit": True}
FACTS = facts_of({**INFO, "CpuCfsQuota": True, "NCPU": 2})


def shape(**more: object) -> Shape:
    limits = Limits(memory_mb=100, storage_mb=10, processes=7, cpus=8)
    return Shape(image="i", labels={}, limits=limits, binds={}, **more)  # type: ignore[arg-type]


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    """The script without its leash, by this machine's own shell."""
    argv = ["sh", "-c", script.removeprefix(HEAD)]
    env = {"PATH": os.environ["PATH"], "HOSTNAME": "h"}
    return subprocess.run(argv, check=False, capture_output=True, text=True, env=env)


def test_a_script_quotes_words_and_variables_and_hides_what_is_unset(tmp_path: Path) -> None:
    odd = "a 'b' \"c\" $d\n`e`"
    words = ("sh", "-c", 'printf %s "$1$GIVEN${HOSTNAME-gone}"; pwd', "sh", odd)
    script = script_of(words, env={"GIVEN": odd}, unset=["HOSTNAME"], folder=str(tmp_path))
    assert run_script(script).stdout == f"{odd}{odd}gone{tmp_path}\n"


def test_a_variable_that_no_shell_can_hold_reaches_the_command(tmp_path: Path) -> None:
    script = script_of(("env",), env={"a-b": "x y"}, unset=[], folder=str(tmp_path))
    assert "a-b=x y\n" in run_script(script).stdout


def test_a_missing_workspace_is_made_and_a_signal_is_told_as_a_shell_tells_it(
    tmp_path: Path,
) -> None:
    gone = tmp_path / "gone"
    done = run_script(script_of(("sh", "-c", "kill -9 $$"), env={}, unset=[], folder=str(gone)))
    assert done.returncode == 137 and gone.is_dir()


def test_a_stream_is_taken_apart_wherever_it_is_cut() -> None:
    sent = b"\1\0\0\0\0\0\0\5hello" + b"\2\0\0\0\0\0\0\3bad" + b"\1\0\0\0\0\0\0\1!"
    for size in (1, 3, 9, 100):
        out, err = Capture(100), Capture(100)
        frames = Frames(out, err)
        for start in range(0, len(sent), size):
            frames.feed(sent[start : start + size])
        assert (out.text(), err.text()) == ("hello!", "bad")


@pytest.mark.parametrize(
    ("target", "path", "leads"),
    [
        ("/tests/x", "a", True),
        ("../tests/x", "a", True),
        ("../b", "d/a", False),
        ("../../b", "d/a", True),
        ("d/../../x", "a", True),
        ("/app/x", "a", False),
        ("/apple", "a", True),
        ("/usr/bin/env", "a", False),
        ("/usr/../tests/x", "a", True),
    ],
)
def test_links_that_lead_out_of_a_workspace_are_known(target: str, path: str, leads: bool) -> None:
    assert leads_out(target, path.count("/"), "/app") is leads


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("ubuntu", ("ubuntu", "latest")),
        ("a/b:1", ("a/b", "1")),
        ("host:5000/a", ("host:5000/a", "latest")),
        ("a@sha256:12", ("a", "sha256:12")),
    ],
)
def test_an_images_reference_is_split(reference: str, parts: tuple[str, str]) -> None:
    assert split_reference(reference) == parts


def test_what_another_living_process_labelled_is_not_abandoned() -> None:
    assert is_abandoned(labels("run")) and is_abandoned({})
    assert not is_abandoned({"milo.owner": maker_name(os.getppid())})


def test_nothing_is_granted_by_default() -> None:
    host = create_arguments(shape(), FACTS)["host_config"]
    assert (host["NetworkMode"], host["CapDrop"], host["CapAdd"]) == ("none", ["ALL"], [])
    assert host["ReadonlyRootfs"] and host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"]) == (100 << 20, 100 << 20)
    assert host["PidsLimit"] == 9 and host["NanoCpus"] == 2e9, "no more processors than there are"


def test_only_an_images_own_root_gets_rights_and_only_such_a_system_is_writable() -> None:
    host = create_arguments(shape(sealed=False, root_rights=True), FACTS)["host_config"]
    assert "CHOWN" in host["CapAdd"] and not host["ReadonlyRootfs"]
    assert not {"SYS_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD", "SYS_PTRACE"} & set(host["CapAdd"])


def test_what_an_image_wants_apart_is_labelled_or_bounded_and_never_nameless() -> None:
    """A volume that nobody knows of would outlive its run, and hold what no limit counts."""
    places = ("/data",)
    own = create_arguments(shape(sealed=False, volumes=places), FACTS)["host_config"]
    (mount,) = own["Mounts"]
    assert (mount["Type"], mount["Target"]) == ("volume", "/data")
    assert mount["VolumeOptions"] == {"Labels": {}} and "Source" not in mount
    base = create_arguments(shape(volumes=places), FACTS)["host_config"]
    assert base["Mounts"] == []
    assert all(f"size={10 << 20}" in base["Tmpfs"][place] for place in ("/tmp", "/data"))


def test_limits_that_an_engine_cannot_enforce_are_not_asked_of_it() -> None:
    weak: EngineFacts = facts_of({"ServerVersion": "x", "NCPU": 2})
    host = create_arguments(shape(), weak)["host_config"]
    assert not {"Memory", "MemorySwap", "PidsLimit", "NanoCpus"} & set(host)


@pytest.mark.parametrize("address", ["tcp://1.2.3.4:2375", "ssh://somewhere"])
def test_an_engine_of_another_machine_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="this machine"):
        connect(address)


def test_an_engine_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.sock"):
        connect(f"unix://{tmp_path}/none.sock")


def test_an_engine_counts_processes_as_we_do_where_its_listener_is_of_our_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: beside an engine in a container of its own no harness reaches its
    model, and is blamed for that."""
    place = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(place))
        engine.listen()
        assert counts_as_we(str(place))
        real = os.readlink
        other = {f"/proc/{os.getpid()}/ns/pid": "pid:[1]"}
        monkeypatch.setattr(os, "readlink", lambda path: other.get(path) or real(path))
        assert not counts_as_we(str(place))


class NarrowEngine:
    """Sees what lies below some folders, and nothing else."""

    def __init__(self, *seen: Path) -> None:
        self._seen = seen
        self.left = 0

    def create_container(self, *_: object, host_config: Any, **__: object) -> dict[str, str]:
        (mount,) = host_config["Mounts"]
        place = Path(mount["Source"])
        assert place.is_dir()
        if not any(place.is_relative_to(folder) for folder in self._seen):
            raise APIError("", explanation=f"invalid mount config: {NOT_SEEN}: {place}")
        self.left += 1
        return {"Id": "probe"}

    def remove_container(self, *_: object, **__: object) -> None:
        self.left -= 1


def test_scratch_lies_where_the_engine_sees_it_too(tmp_path: Path) -> None:
    """What breaks without it: an engine beside our container shows every command empty folders."""
    roots = (tmp_path / "memory", tmp_path / "files")
    for root in roots:
        root.mkdir()
    api = NarrowEngine(roots[1])
    engine = cast(Engine, SimpleNamespace(api=api))
    assert seen_root(engine, "image", roots) == roots[1]
    assert (api.left, [*roots[0].iterdir(), *roots[1].iterdir()]) == (0, [])
    with pytest.raises(ConfigError, match=f"shares {roots[0]} with us"):
        seen_root(engine, "image", roots[:1])
