"""A provider's key is found nowhere: not in what a harness sees, not in any byte of the records.

The provider leaks it in every way a careless one might: in answers, whole and cut in two by a
stream, in errors, in addresses with the key in them, in headers and redirects.
"""

from __future__ import annotations

import logging
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from every_byte import places_of

from milo.core.evidence import Trace
from milo.core.plan import RunPlan
from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.store import RunStore, encode_plan
from milo.testing.gateways import FixedClock
from milo.testing.scripted_model import Answer, ScriptedServer, in_turn

CANARY = "canary-0f3e77-secret-key"
ADDRESS = f"https://provider.invalid/v1?key={CANARY}"
LEAKS = (
    Answer(text=f"your key is {CANARY}", headers={"x-echo": CANARY}),
    Answer(text=f"{CANARY[:9]} {CANARY}"),
    Answer(thoughts=CANARY, text=f"x{CANARY}"),
    *(Answer(status=s, error=f"{s}: bad {CANARY} at {ADDRESS}") for s in (400, 401, 404, 500)),
    Answer(status=429, error=ADDRESS, headers={"Retry-After": "0", "x-key": CANARY}),
    Answer(status=307, headers={"Location": ADDRESS}),
    Answer(text=f"half of {CANARY} and more", drop_after=3),
    Answer(drop=True, error=CANARY),
)
PATHS = ("chat/completions", "responses", "messages")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_leaked_key_is_in_no_answer_no_log_and_no_record(
    tmp_path: Path,
    socket_dir: Path,
    caplog: pytest.LogCaptureFixture,
    path: str,
    streaming: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    asked = {"model": "m", "max_tokens": 9, "stream": streaming}
    asked["input" if path == "responses" else "messages"] = [{"role": "user", "content": "hi"}]
    store = RunStore.create(tmp_path / "run", "canary", encode_plan(RunPlan()), clock=FixedClock())
    seen = b""
    for nth, leak in enumerate(LEAKS):
        async with ScriptedServer(in_turn([leak])) as server:
            upstream = HttpUpstream(server.base_url, "m", wire_model="m", api_key=CANARY)
            gateway = Gateway(
                Line(
                    upstream=upstream,
                    pins=Pins(model="m"),
                    rng=np.random.default_rng(0),
                    policy=Policy(tries=2, first_wait_s=0.001),
                    secrets=(CANARY,),
                ),
                socket_dir / str(nth),
            )
            await gateway.start()
            session = await gateway.open_session(f"s{nth}", Caps(), 60)
            connector = aiohttp.UnixConnector(str(gateway.socket))
            headers = {"Authorization": f"Bearer {session.token}"}
            async with (
                aiohttp.ClientSession(connector=connector, headers=headers) as client,
                client.post(f"http://gw/v1/{path}", json=asked) as reply,
            ):
                seen += await reply.read() + repr(reply.headers).encode()
            report = await session.close()
            assert report.usage.calls == 1
            assert server.tally.headers[0]["Authorization"] == f"Bearer {CANARY}"
            store.put_session(f"s{nth}", Trace(exchanges=report.exchanges))
            store.put_trace(Trace(exchanges=report.exchanges, stderr=report.fault))
            await gateway.stop()
            await upstream.close()
    store.close()
    assert b"[redacted]" in seen
    assert CANARY.encode() not in seen
    assert CANARY not in caplog.text
    assert places_of([CANARY], tmp_path) == []
