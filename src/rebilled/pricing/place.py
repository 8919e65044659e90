"""Who sells a call: read off the endpoint's host, then off the provider's name."""

from __future__ import annotations

import re
from dataclasses import dataclass

VENDORS = {
    "claude": "anthropic",
    "gpt": "openai",
    "chatgpt": "openai",
    "codex": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "google",
    "deepseek": "deepseek",
    "grok": "x-ai",
    "mistral": "mistral",
    "ministral": "mistral",
    "codestral": "mistral",
    "devstral": "mistral",
    "magistral": "mistral",
    "pixtral": "mistral",
    "kimi": "moonshotai",
    "moonshot": "moonshotai",
    "glm": "zai",
    "minimax": "minimax",
    "command": "cohere",
}
"""The vendor of a model family, by the first word of the name. It picks a list; the name must still stand in it."""

OTHERS_MODELS: dict[str, tuple[str, ...]] = {
    "": tuple(dict.fromkeys(VENDORS.values())),
    "azure": ("openai", "anthropic", "deepseek", "x-ai", "moonshotai"),
    "vertex": ("google", "anthropic"),
    "aws": ("anthropic",),
    "openrouter": ("anthropic", "openai", "google", "x-ai", "cohere"),
}
"""Sellers that pass on other vendors' list prices where they have none of their own, and whose.

The empty name is a seller that nobody knows. OpenRouter sells open weights at their hosts' prices, not the vendor's.
"""

SELLERS = {
    "anthropic": "",
    "openai": "",
    "gemini": "",
    "litellm": "",
    "google": "google",
    "vertex": "vertex",
    "bedrock": "aws",
    "aws": "aws",
    "xai": "x-ai",
    "moonshot": "moonshotai",
    "kimi": "moonshotai",
    "z.ai": "zai",
    "zhipu": "zhipuai",
}
"""Provider names that are not the seller's own. The first four name a body's shape, which any host may speak."""

_HOSTS = (
    (r"(?P<region>(?:us|eu)\.)?api\.openai\.com", "openai"),
    (r"api\.anthropic\.com", "anthropic"),
    (r"bedrock-(?:runtime|mantle)(?:-fips)?\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)", "aws"),
    (r"(?:global-)?aiplatform\.googleapis\.com", "vertex"),
    (r"(?P<region>[a-z0-9-]+)-aiplatform\.googleapis\.com", "vertex"),
    (r"aiplatform\.(?P<region>[a-z]+)\.rep\.googleapis\.com", "vertex"),
    (r"generativelanguage\.googleapis\.com", "google"),
    (r".+\.(?:openai|services\.ai|cognitiveservices|inference\.ml|models\.ai)\.azure\.com|.+\.azure-api\.net", "azure"),
    (r"(?:api\.)?openrouter\.ai", "openrouter"),
    (r"api\.deepseek\.com", "deepseek"),
    (r"(?:[a-z0-9-]+\.)?api\.x\.ai", "x-ai"),
    (r"api\.mistral\.ai", "mistral"),
    (r"api\.groq\.com", "groq"),
    (r"api\.(?:moonshot\.(?:ai|cn)|kimi\.com)", "moonshotai"),
    (r"api\.z\.ai", "zai"),
    (r"open\.bigmodel\.cn", "zhipuai"),
    (r"api\.minimaxi?\.(?:io|com|chat)", "minimax"),
    (r"api\.fireworks\.ai", "fireworks"),
    (r"api\.together\.(?:xyz|ai)", "together"),
    (r"api\.cohere\.(?:com|ai)", "cohere"),
    (r"api\.perplexity\.ai", "perplexity"),
    (r"api\.cerebras\.ai", "cerebras"),
    (r"api\.novita\.ai", "novita"),
    (r"inference\.baseten\.co", "baseten"),
    (r"api\.githubcopilot\.com", "github-copilot"),
)
_KNOWN = {seller for _, seller in _HOSTS}


@dataclass(frozen=True, slots=True)
class Place:
    """The seller of a call, empty where unknown; regional: a regional endpoint, None where that is not told."""

    seller: str
    regional: bool | None = None


def locate(provider: str, endpoint: str | None) -> Place:
    """The seller of a call. A known host decides; else the provider's name, unless that only names a body's shape."""
    if endpoint:
        host = re.sub(r"^[a-z]+://", "", endpoint.lower()).partition("/")[0].partition(":")[0]
        for pattern, seller in _HOSTS:
            found = re.fullmatch(pattern, host)
            if found:
                return Place(seller, bool(found.groupdict().get("region")))
    name = provider.lower()
    return Place(SELLERS.get(name, name if name in _KNOWN else ""))


def vendor_of(name: str) -> str | None:
    """The vendor whose family of models the name begins with, if any."""
    return VENDORS.get(re.split(r"[-.:@]", name, maxsplit=1)[0])
