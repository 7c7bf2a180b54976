"""What a Dockerfile asks of its builder is found, with its line; what it doesn't isn't."""

from __future__ import annotations

import pytest

from milo.core.dockerfile import Builder, asks_of, bases_of, instructions

PLAIN = r"""
# syntax is no word here
FROM python:3.11 AS base
ARG VERSION=1
RUN --no-such-flag apt-get update && \
    # a comment between
    apt-get install -y gcc && echo $((1<<2)) && cat <<<"word"
COPY --from=base --chown=1:1 a b
ENV BUILDPLATFORM=x
CMD ["python3", "-c", "print(1 << 2)"]
"""


def test_an_ordinary_dockerfile_asks_for_nothing() -> None:
    assert asks_of(PLAIN) == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("RUN --mount=type=cache,target=/c make", "RUN --mount=type=cache,target=/c"),
        ("run --network=none make", "RUN --network=none"),
        ("COPY --chown=1 --chmod=755 a b", "COPY --chmod=755"),
        ("ADD --checksum=sha256:1 u b", "ADD --checksum=sha256:1"),
        ("ARG TARGETARCH", "ARG TARGETARCH"),
    ],
)
def test_what_only_buildkit_knows_is_named_with_its_line(line: str, words: str) -> None:
    (ask,) = asks_of(f"FROM a\n\nRUN b \\\n  c\n{line}\n{line}\n")
    assert (ask.builder, ask.line, ask.words) == (Builder.BUILDKIT, 5, words)


@pytest.mark.parametrize("start", ["RUN cat <<EOF > x", "COPY <<-'END' /x", 'RUN python3 <<"E_1"'])
def test_here_documents_need_a_newer_one_unless_the_syntax_is_named(start: str) -> None:
    text = f"FROM a\n{start}\nbody\nEOF\n"
    assert [(ask.builder, ask.line) for ask in asks_of(text)] == [(Builder.HEREDOCS, 2)]
    named = f"# syntax=docker/dockerfile:1\n{text}"
    assert [ask.builder for ask in asks_of(named)] == [Builder.BUILDKIT]
    assert bases_of(named)[0] == "docker/dockerfile:1"


def test_bases_are_the_images_that_no_stage_and_no_argument_stands_for() -> None:
    text = (
        "ARG V=1\nFROM --platform=linux/amd64 a:1 AS one\nFROM one\nFROM b:$V\nFROM scratch\n"
        "COPY --from=0 x y\nCOPY --from=One x y\nCOPY --from=c/d:2 x y\nFROM a:1\n"
        "RUN --mount=type=bind,from=e:3,target=/e make\n"
    )
    assert bases_of(text) == ("a:1", "c/d:2", "e:3")


def test_instructions_are_joined_over_their_lines_and_comments_dropped() -> None:
    found = instructions(PLAIN)
    assert [one.line for one in found] == [3, 4, 5, 8, 9, 10]
    assert found[2].text.startswith("RUN") and found[2].text.endswith('"word"')
    assert "comment" not in found[2].text
