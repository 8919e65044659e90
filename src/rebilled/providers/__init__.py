"""Providers: how a body becomes sections and blocks, what its usage means, how its cache behaves.

One file an API shape, offering `API`; dated cache rules stand in `data/`.
"""

from __future__ import annotations

from rebilled.errors import RecordError
from rebilled.providers.api import Api
from rebilled.providers.endpoints import other_call
from rebilled.registry import Registry
from rebilled.spans import Layout

APIS: Registry[Api] = Registry("rebilled.providers", "API")


def find_api(layout: Layout, url: str, hint: str = "") -> Api | None:
    """The API that a body is written for: from the log's own word, else the URL and the body's shape.

    hint: what the log calls the provider, e.g. `openai.responses`; a word that names no API is no help.
    Raises RecordError for calls that are no steps: embeddings, token counts, batches, stored caches.
    """
    other = other_call(url)
    if other:
        raise RecordError("no_request", f"a call of {other}, which reads no prompt cache")
    best, best_score = None, 0
    for api in APIS:
        score = api.fits(layout.members, layout, url)
        if score and hint and _is_called(api, hint):
            score += 100
        if score > best_score:
            best, best_score = api, score
    return best


def _is_called(api: Api, hint: str) -> bool:
    word = hint.lower().replace("-", ".").replace("_", ".")
    name = api.name.replace("_", ".")
    return word == name or (word != "openai" and name.split(".")[0] == word)
