"""Tokens a byte by kind of block: dated constants to start from, scaled to each trace afterwards."""

from __future__ import annotations

from rebilled.model import Block, Message

RATES = {"tools": 0.32, "system": 0.27, "text": 0.27, "call": 0.32, "result": 0.32, "media": 0.3, "frame": 0.2}
"""Tokens a byte of Claude models from 4.7 on, between prose (3.1 bytes a token) and schemas (2.8); measured on own
texts, 2026-11-30. Only their ratio counts: they are scaled to the tokens that a trace reports."""
KINDS = tuple(RATES)
"""The kinds of bytes: the sections in front, kinds of message blocks, and what frames a message around them."""
MOST_MEDIA_TOKENS = 1600.0
"""An image costs ceil(w/28) x ceil(h/28) tokens after it is made smaller (Anthropic's vision page, 2026-08-21),
whatever its bytes are; this is what a large one comes to."""

_CALLS = ("tool_use", "toolUse", "function_call", "functionCall", "server_tool_use", "custom_tool_call")
_RESULTS = ("tool_result", "toolResult", "function_call_output", "functionResponse", "custom_tool_call_output")
_MEDIA = ("image", "document", "input_image", "input_file", "image_url", "file", "video", "audio", "input_audio")


def kind_of(block: Block) -> str:
    """The kind of a message block as far as it tells its tokens a byte: text, call, result or media."""
    kind = block.kind
    if kind in _CALLS:
        return "call"
    if kind in _RESULTS:
        return "result"
    return "media" if kind in _MEDIA else "text"


def weight_of(block: Block, rate: float) -> float:
    """Estimated tokens of one block; media are capped, as their bytes tell little."""
    weight = block.size * rate
    return min(weight, MOST_MEDIA_TOKENS) if kind_of(block) == "media" else weight


def frame_bytes(message: Message) -> int:
    """Bytes of a message around its blocks: the role and what holds the list."""
    blocks = message.blocks
    return max(0, message.size - sum(block.size for block in blocks) - max(0, len(blocks) - 1))
