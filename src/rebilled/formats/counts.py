"""Token counts that a tracing tool keeps under names of its own, as a response in the provider's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rebilled.model import Json
from rebilled.spans import dump_json

ANTHROPIC = "anthropic"
_HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gcp.gemini": "generativelanguage.googleapis.com",
    "gemini": "generativelanguage.googleapis.com",
    "gcp.vertex_ai": "aiplatform.googleapis.com",
    "vertex_ai": "aiplatform.googleapis.com",
    "google_vertexai": "aiplatform.googleapis.com",
    "aws.bedrock": "bedrock-runtime.amazonaws.com",
    "aws_bedrock": "bedrock-runtime.amazonaws.com",
    "bedrock": "bedrock-runtime.amazonaws.com",
    "azure.ai.openai": "openai.azure.com",
    "azure": "openai.azure.com",
    "deepseek": "api.deepseek.com",
    "mistral_ai": "api.mistral.ai",
    "mistral": "api.mistral.ai",
    "x_ai": "api.x.ai",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
    "cohere": "api.cohere.com",
    "openrouter": "openrouter.ai",
    "moonshot": "api.moonshot.ai",
}


class Counts(NamedTuple):
    """Tokens of a call. total: all input. write: None where the tool reports no writes."""

    total: int
    read: int
    write: int | None
    output: int

    @classmethod
    def of(cls, reported: int, read: int, write: int | None, output: int, *, exclusive: bool = False) -> Counts:
        """Counts from a reported input that includes reads and writes, unless it is too small for them.

        exclusive: where it is known that it leaves them out.
        """
        cached = read + (write or 0)
        return cls(reported + cached if exclusive or cached > reported else reported, read, write, output)

    def response(self, shape: str, ident: str | None, model: str | None) -> bytes:
        """A response with these counts: `anthropic`, else as Chat Completions reports them."""
        usage: dict[str, Json]
        if shape == ANTHROPIC:
            usage = {
                "input_tokens": self.total - self.read - (self.write or 0),
                "cache_read_input_tokens": self.read,
                "cache_creation_input_tokens": self.write or 0,
                "output_tokens": self.output,
            }
        else:
            details: dict[str, Json] = {"cached_tokens": self.read}
            if self.write is not None:
                details["cache_write_tokens"] = self.write
            usage = {
                "prompt_tokens": self.total,
                "completion_tokens": self.output,
                "prompt_tokens_details": details,
            }
        return dump_json({"id": ident, "model": model, "usage": usage})


def shape_of(provider: str, model: str) -> str:
    """The shape in which bodies and usage of a provider are rebuilt: `anthropic` for Claude, else `openai`."""
    return ANTHROPIC if provider.startswith(ANTHROPIC) or "claude" in model else "openai"


def hint_of(shape: str) -> str:
    """The API of a rebuilt body, in the word that decides it."""
    return "anthropic.messages" if shape == ANTHROPIC else "openai.chat"


def host_of(provider: str) -> str | None:
    """The address that a tracing tool means by a provider's name; None where it is none of the usual names."""
    return _HOSTS.get(provider.lower())


def split_model(name: str) -> tuple[str | None, str]:
    """A model name of LiteLLM's, such as `deepseek/deepseek-chat`: the address of its provider, and the bare name."""
    rest = name.removeprefix("litellm_proxy/")
    provider, slash, bare = rest.partition("/")
    host = host_of(provider) if slash else None
    return host, bare if host is not None else rest


def first_count(values: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of these members that is a count."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value.isdigit() and len(value) < 16:
            return int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15:
            return int(value)
    return None


def first_text(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these members that is a text with something in it."""
    return next((value for name in names if isinstance(value := values.get(name), str) and value), None)
