"""What the URL of a call says about its body, and which calls generate nothing and are therefore no steps."""

from __future__ import annotations

import re
from typing import Final

_APIS: Final = (
    (re.compile(r"/chat/completions$"), "openai.chat"),
    (re.compile(r"/responses(?:/compact)?$"), "openai.responses"),
    (re.compile(r"/messages$"), "anthropic.messages"),
    (re.compile(r"/converse(?:-stream)?$"), "bedrock.converse"),
    (re.compile(r"(?i):(?:stream)?generateContent$"), "gemini.generate_content"),
    (re.compile(r"/v2/chat$"), "cohere.chat"),
    (
        re.compile(r"(?i)(?:anthropic|claude)[^/]*(?:/invoke(?:-with-response-stream)?|:(?:stream)?rawpredict)$"),
        "anthropic.messages",
    ),
)
"""Paths that name an API. InvokeModel and rawPredict carry any vendor's body, so the model in the path has to tell."""

_OTHER: Final = re.compile(
    r"count[_-]?tokens|/input_tokens$|/tokeni[sz]e|/tokenizers/|token_counter"
    r"|/batch(?:es)?(?:/|$)|:batch\w+$|/batchpredictionjobs"
    r"|/embed(?:dings)?$|:embedcontent$|:batchembed|/rerank$|/moderations$|/classify$"
    r"|/audio/|/images/|/files(?:/|$)|/fine[_-]tun|/cachedcontents(?:/|$)",
    re.IGNORECASE,
)
"""Endpoints that count, embed, rank, store or queue: their calls read no prompt cache."""


def path_of(url: str) -> str:
    """The path of a URL without scheme, host and query."""
    rest = re.sub(r"^[a-z]+://[^/]*", "", url.partition("?")[0], flags=re.IGNORECASE)
    return rest.rstrip("/")


def api_named(url: str) -> str:
    """The name of the API that a URL belongs to, empty where it does not tell."""
    path = path_of(url)
    return next((name for pattern, name in _APIS if pattern.search(path)), "")


def other_call(url: str) -> str:
    """The path of a call that is no step, such as `/v1/embeddings`; empty where the call may be one."""
    path = path_of(url)
    return path if path and _OTHER.search(path) else ""
