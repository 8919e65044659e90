"""Who bills a call: told from the host it was sent to."""

from __future__ import annotations

from rebilled.model import Record
from rebilled.providers.api import Api

_HOSTS = (
    ("api.openai.com", "openai"),
    ("openrouter.ai", "openrouter"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("api.moonshot", "moonshot"),
    ("openai.azure.com", "azure"),
    ("aiplatform.googleapis.com", "vertex"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("bedrock-runtime", "bedrock"),
    ("api.anthropic.com", "anthropic"),
    ("api.cohere", "cohere"),
    ("api.fireworks.ai", "fireworks"),
    ("api.together.xyz", "together"),
    ("api.z.ai", "zai"),
    ("bigmodel.cn", "zai"),
    ("api.minimax", "minimax"),
    ("dashscope", "alibaba"),
)


def provider_of(api: Api, record: Record) -> str:
    """Who bills the call: by the host where it is a known one, else by the API."""
    place = record.meta.get("endpoint")
    host = place if isinstance(place, str) else record.url or ""
    for part, name in _HOSTS:
        if part in host:
            return name
    return api.provider
