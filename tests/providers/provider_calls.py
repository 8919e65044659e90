"""Realistic request bodies of every provider, small: what a client sends, the URL it sends it to, the API it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rebilled.model import Json, Usage
from rebilled.providers import APIS
from rebilled.providers.api import Api
from rebilled.spans import Layout

ANTHROPIC = "anthropic.messages"
CHAT = "openai.chat"
RESPONSES = "openai.responses"
GEMINI = "gemini.generate_content"
CONVERSE = "bedrock.converse"
COHERE = "cohere.chat"
Body = dict[str, Any]
MARK = {"type": "ephemeral"}
SCHEMA: Body = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}


class Call(NamedTuple):
    """A request: what it is called here, where it goes, and the API it speaks.

    alone: the body tells its API without the URL.
    """

    name: str
    url: str
    body: Body
    api: str
    alone: bool = True


def user(text: Any = "When does the ferry leave?") -> Body:
    return {"role": "user", "content": text}


def chat(model: str, **extra: Any) -> Body:
    messages = [{"role": "system", "content": "Answer in one line."}, user()]
    return {"model": model, "messages": messages, "tools": [function_tool()], **extra}


def messages(model: str, **extra: Any) -> Body:
    system = [{"type": "text", "text": "Answer in one line.", "cache_control": MARK}]
    return {"model": model, "max_tokens": 500, "system": system, "messages": [user()], **extra}


def function_tool() -> Body:
    return {"type": "function", "function": {"name": "tides", "description": "Tides.", "parameters": SCHEMA}}


def claude_tool() -> Body:
    return {"name": "tides", "description": "Tides.", "input_schema": SCHEMA}


def used_tool() -> list[Body]:
    return [
        user(),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {}}]},
        user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "high"}]),
    ]


def called_function() -> list[Body]:
    call = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    return [
        user(),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "high"},
    ]


def marked(text: str) -> list[Body]:
    return [{"type": "text", "text": text, "cache_control": MARK}]


_BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model"
_VERTEX = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/models"

CALLS = (
    Call("claude", "https://api.anthropic.com/v1/messages", messages("claude-opus-5-5"), ANTHROPIC),
    Call("claude beta", "https://api.anthropic.com/v1/messages?beta=true", messages("claude-opus-5-5"), ANTHROPIC),
    Call(
        "claude without a system prompt",
        "https://api.anthropic.com/v1/messages",
        {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [user()]},
        ANTHROPIC,
    ),
    Call(
        "claude with a system message inside the history",
        "https://api.anthropic.com/v1/messages",
        messages("claude-opus-5", messages=[user(), {"role": "system", "content": "It is night."}]),
        ANTHROPIC,
    ),
    Call(
        "claude through a local proxy",
        "http://127.0.0.1:4000/v1/messages",
        messages("claude-sonnet-5", tools=[claude_tool()], messages=used_tool()),
        ANTHROPIC,
    ),
    Call(
        "deepseek, Anthropic's shape",
        "https://api.deepseek.com/anthropic/v1/messages",
        messages("deepseek-v4-flash"),
        ANTHROPIC,
    ),
    Call(
        "kimi, Anthropic's shape",
        "https://api.moonshot.ai/anthropic/v1/messages",
        messages("kimi-k3", tools=[claude_tool()]),
        ANTHROPIC,
    ),
    Call("glm, Anthropic's shape", "https://api.z.ai/api/anthropic/v1/messages", messages("glm-5.2"), ANTHROPIC),
    Call(
        "qwen, Anthropic's shape",
        "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1/messages",
        messages("qwen3-max", messages=used_tool()),
        ANTHROPIC,
    ),
    Call(
        "minimax, Anthropic's shape",
        "https://api.minimax.io/anthropic/v1/messages",
        messages("MiniMax-M2.7"),
        ANTHROPIC,
    ),
    Call(
        "claude by InvokeModel",
        f"{_BEDROCK}/us.anthropic.claude-opus-5-v1%3A0/invoke-with-response-stream",
        {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [user()]},
        ANTHROPIC,
    ),
    Call(
        "claude by an application profile",
        f"{_BEDROCK}/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fab1/invoke",
        {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [user()]},
        ANTHROPIC,
    ),
    Call(
        "claude on Vertex",
        f"{_VERTEX}/anthropic/models/claude-opus-5@20260724:streamRawPredict",
        {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": [user()], "stream": True},
        ANTHROPIC,
    ),
    Call("gpt chat", "https://api.openai.com/v1/chat/completions", chat("gpt-5.4"), CHAT),
    Call(
        "gpt chat with a called tool",
        "https://api.openai.com/v1/chat/completions",
        {"model": "gpt-4.1", "messages": called_function(), "max_tokens": 50},
        CHAT,
    ),
    Call(
        "azure chat",
        "https://x.openai.azure.com/openai/deployments/main/chat/completions?api-version=2026-01-01",
        chat("gpt-5.4", max_completion_tokens=50),
        CHAT,
    ),
    Call(
        "deepseek",
        "https://api.deepseek.com/chat/completions",
        chat("deepseek-v4-pro", thinking={"type": "enabled"}),
        CHAT,
    ),
    Call("grok", "https://api.x.ai/v1/chat/completions", chat("grok-4.7"), CHAT),
    Call("mistral", "https://api.mistral.ai/v1/chat/completions", chat("mistral-large-latest", safe_prompt=True), CHAT),
    Call("groq", "https://api.groq.com/openai/v1/chat/completions", chat("openai/gpt-oss-120b"), CHAT),
    Call(
        "kimi", "https://api.moonshot.ai/v1/chat/completions", chat("kimi-k3", prompt_cache_options={"ttl": "1h"}), CHAT
    ),
    Call(
        "qwen with explicit marks",
        "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
        {"model": "qwen3-max", "messages": [{"role": "system", "content": marked("One line.")}, user()]},
        CHAT,
    ),
    Call(
        "glm without a system prompt",
        "https://open.bigmodel.cn/api/paas/v4/chat/completions",
        {"model": "glm-5.2", "messages": [user()], "thinking": {"type": "enabled"}, "max_tokens": 50},
        CHAT,
    ),
    Call("minimax", "https://api.minimax.io/v1/chat/completions", chat("MiniMax-M2.7", reasoning_split=True), CHAT),
    Call(
        "fireworks",
        "https://api.fireworks.ai/inference/v1/chat/completions",
        chat("accounts/fireworks/models/glm-5p2", top_k=40),
        CHAT,
    ),
    Call(
        "openrouter with claude and marks",
        "https://openrouter.ai/api/v1/chat/completions",
        {"model": "anthropic/claude-sonnet-5", "messages": [user(marked("A timetable. " * 9))], "max_tokens": 50},
        CHAT,
    ),
    Call(
        "litellm with claude and marks",
        "http://localhost:4000/chat/completions",
        chat("claude-sonnet-5", messages=[{"role": "system", "content": marked("One line.")}, user()], max_tokens=9),
        CHAT,
    ),
    Call("vllm", "http://10.0.0.4:8000/v1/chat/completions", chat("Qwen/Qwen3-32B", top_k=20), CHAT),
    Call("sglang", "http://10.0.0.4:30000/v1/chat/completions", chat("deepseek-ai/DeepSeek-V3"), CHAT),
    Call(
        "gemini through OpenAI's shape",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        chat("gemini-3.8-flash"),
        CHAT,
    ),
    Call("gpt-oss by InvokeModel", f"{_BEDROCK}/openai.gpt-oss-120b-1%3A0/invoke", chat("openai.gpt-oss-120b"), CHAT),
    Call(
        "mistral on Vertex",
        f"{_VERTEX}/mistralai/models/mistral-medium-3:rawPredict",
        chat("mistral-medium-3"),
        CHAT,
    ),
    Call(
        "gpt responses",
        "https://api.openai.com/v1/responses",
        {
            "model": "gpt-5.6-sol",
            "instructions": "One line.",
            "input": [user()],
            "prompt_cache_options": {"ttl": "12h"},
        },
        RESPONSES,
    ),
    Call(
        "gpt responses, bare", "https://api.openai.com/v1/responses", {"model": "gpt-5.5", "input": [user()]}, RESPONSES
    ),
    Call(
        "gpt responses, a chain",
        "https://api.openai.com/v1/responses",
        {"model": "gpt-5.5", "input": "And back?", "previous_response_id": "resp_1"},
        RESPONSES,
    ),
    Call(
        "codex", "https://chatgpt.com/backend-api/codex/responses", {"model": "gpt-6-sol", "input": [user()]}, RESPONSES
    ),
    Call("grok responses", "https://api.x.ai/v1/responses", {"model": "grok-4.7", "input": [user()]}, RESPONSES),
    Call(
        "gemini",
        f"{_GOOGLE}/gemini-3.8-flash:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "When?"}]}], "systemInstruction": {"parts": []}},
        GEMINI,
    ),
    Call(
        "gemini with an explicit cache",
        f"{_GOOGLE}/gemini-2.5-flash:generateContent",
        {"cachedContent": "cachedContents/k1", "contents": [{"role": "user", "parts": [{"text": "When?"}]}]},
        GEMINI,
    ),
    Call(
        "gemini on Vertex",
        f"{_VERTEX}/google/models/gemini-3.1-pro-preview:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "When?"}]}], "labels": {"team": "tides"}},
        GEMINI,
    ),
    Call(
        "converse",
        f"{_BEDROCK}/us.anthropic.claude-opus-5-v1%3A0/converse-stream",
        {
            "messages": [user([{"text": "When?"}, {"cachePoint": {"type": "default"}}])],
            "inferenceConfig": {"maxTokens": 9},
        },
        CONVERSE,
    ),
    Call(
        "converse, bare",
        f"{_BEDROCK}/amazon.nova-pro-v1%3A0/converse",
        {"messages": [user([{"text": "When?"}])], "system": [{"text": "One line."}]},
        CONVERSE,
    ),
    Call(
        "nova by InvokeModel",
        f"{_BEDROCK}/amazon.nova-pro-v1%3A0/invoke",
        {"schemaVersion": "messages-v1", "messages": [user([{"text": "When?"}])], "inferenceConfig": {}},
        CONVERSE,
    ),
    Call("cohere", "https://api.cohere.com/v2/chat", chat("command-a-03-2025", safety_mode="STRICT"), COHERE),
    Call(
        "cohere through OpenAI's shape",
        "https://api.cohere.ai/compatibility/v1/chat/completions",
        chat("command-a-03-2025"),
        CHAT,
        alone=False,
    ),
)

OTHERS = (
    ("https://api.openai.com/v1/embeddings", {"model": "text-embedding-3-large", "input": ["a quay"]}),
    ("https://api.openai.com/v1/moderations", {"model": "omni-moderation-latest", "input": "a quay"}),
    ("https://api.openai.com/v1/responses/input_tokens", {"model": "gpt-5.5", "input": [user()], "store": False}),
    ("https://api.openai.com/v1/audio/speech", {"model": "tts-1", "input": "a quay", "voice": "alloy"}),
    ("https://api.openai.com/v1/batches", {"input_file_id": "file-1", "endpoint": "/v1/chat/completions"}),
    ("https://api.anthropic.com/v1/messages/count_tokens", {"model": "claude-opus-5", "messages": [user()]}),
    ("https://api.anthropic.com/v1/messages/count_tokens?beta=true", messages("claude-opus-5")),
    ("https://api.anthropic.com/v1/messages/batches", {"requests": [{"custom_id": "1", "params": messages("x")}]}),
    (f"{_GOOGLE}/gemini-2.5-flash:countTokens", {"contents": [{"parts": [{"text": "When?"}]}]}),
    (f"{_GOOGLE}/gemini-2.5-flash:batchGenerateContent", {"contents": [{"parts": [{"text": "When?"}]}]}),
    (f"{_GOOGLE}/gemini-embedding-001:embedContent", {"content": {"parts": [{"text": "a quay"}]}}),
    (
        "https://generativelanguage.googleapis.com/v1beta/cachedContents",
        {"model": "models/gemini-2.5-flash", "contents": [{"parts": [{"text": "When?"}]}], "ttl": "300s"},
    ),
    (f"{_VERTEX}/anthropic/models/count-tokens:rawPredict", messages("claude-opus-5")),
    (f"{_BEDROCK}/anthropic.claude-opus-5-v1%3A0/count-tokens", {"input": {"converse": {"messages": [user()]}}}),
    ("https://api.moonshot.ai/v1/tokenizers/estimate-token-count", {"model": "kimi-k3", "messages": [user()]}),
    ("http://10.0.0.4:8000/tokenize", {"model": "Qwen/Qwen3-32B", "messages": [user()]}),
    ("https://api.cohere.com/v2/embed", {"model": "embed-v4.0", "input_type": "search_query", "texts": ["a quay"]}),
    ("https://api.cohere.com/v2/rerank", {"model": "rerank-v4", "query": "quay", "documents": ["a quay"]}),
)
"""Calls that are no steps: they count, embed, rank, store or queue."""


def layout_of(body: Body, **style: Any) -> Layout:
    return Layout.of(json.dumps(body, **style).encode())


def api_called(name: str) -> Api:
    return next(api for api in APIS if api.name == name)


def usage_of(api: str, response: Json, events: Sequence[Json] = ()) -> Usage:
    found = api_called(api).read_reply(response, events).usage
    assert found is not None
    return found


def kinds(usage: Usage) -> tuple[int, int, int, int]:
    """Uncached, read, written and output tokens."""
    return usage.uncached_input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens
