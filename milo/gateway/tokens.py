"""Counting tokens of text that no provider counted: of broken or silent streams, and on request.

The tokenizer is tiktoken's ``cl100k_base``, whose vocabulary litellm brings along, so that nothing
is fetched. It is not the pinned model's own: figures from here are marked as estimated.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

ENCODING = "cl100k_base"
VOCABULARY = f"https://openaipublic.blob.core.windows.net/encodings/{ENCODING}.tiktoken"
CACHE = "TIKTOKEN_CACHE_DIR"
BYTES_PER_TOKEN = 4


def tokens_of_bytes(size: int) -> int:
    """A rough number of tokens in `size` bytes, for reservations and for calls that were cut."""
    return size // BYTES_PER_TOKEN + 1


def count_tokens(text: str) -> int:
    """The tokens of a text. The first call takes about half a second.

    Where litellm carries no vocabulary, a token is taken for four bytes.
    """
    if not text:
        return 0
    encoding = _encoding()
    if encoding is None:
        return tokens_of_bytes(len(text.encode(errors="replace")))
    return len(encoding.encode_ordinary(text))


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding | None:
    folder = _vocabularies()
    if folder is None:
        return None
    import tiktoken

    os.environ.setdefault(CACHE, str(folder))
    return tiktoken.get_encoding(ENCODING)


def _vocabularies() -> Path | None:
    """Where litellm keeps vocabularies under tiktoken's names; None where ours isn't there.

    litellm itself is not imported: that would take seconds.
    """
    spec = importlib.util.find_spec("litellm")
    name = hashlib.sha1(VOCABULARY.encode()).hexdigest()
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "litellm_core_utils" / "tokenizers"
        if (folder / name).is_file():
            return folder
    return None
