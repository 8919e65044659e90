"""What several causes ask of the evidence, and how they put it into words."""

from __future__ import annotations

from functools import lru_cache

from rebilled.diff import parameter_groups, same
from rebilled.evidence import Evidence
from rebilled.model import Json
from rebilled.prompt import Prompt
from rebilled.providers.content import canonical
from rebilled.providers.elements import kind_of, tool_name
from rebilled.spans import dump_json

_MEDIA = ("image", "document", "input_image", "input_file", "image_url", "file", "input_audio", "audio", "video")
_MEDIA_KEYS = ("image", "document", "video", "audio", "inlineData", "inline_data", "fileData", "file_data")
_RESULTS = ("tool_result", "function_call_output", "toolResult", "functionResponse", "tool", "custom_tool_call_output")
_REASONING = ("thinking", "redacted_thinking", "reasoning", "reasoningContent")


def short(text: str, most: int = 60) -> str:
    """The text on one line, cut to `most` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def duration(seconds: float) -> str:
    """A time span as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min".replace(".0 ", " ")
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h".replace(".0 ", " ")
    return f"{seconds / 86_400:.1f} days".replace(".0 ", " ")


def tell_parameter(evidence: Evidence, group: str, names: tuple[str, ...], sentence: str) -> str | None:
    """The sentence with name, old and new value of the first of these parameters that differs, else None."""
    for name in evidence.changed(group):
        if name in names:
            mine, theirs = parameter_groups(evidence.before, group), parameter_groups(evidence.after, group)
            old, new = (_value(values, name) for values in (mine, theirs))
            return sentence.format(name=name.removeprefix("meta."), old=old, new=new)
    return None


def _value(values: object, name: str) -> str:
    value = values.get(name) if hasattr(values, "get") else None
    if value is None:
        return "nothing"
    return short(value if isinstance(value, str) else dump_json(value).decode("utf-8", "replace"), 40)


def part_changed(evidence: Evidence, name: str, key: str, *, inside: bool) -> bool:
    """Whether of an object parameter the member `key` differs (inside), or any other member (not inside)."""
    mine = parameter_groups(evidence.before, "message_level").get(name)
    theirs = parameter_groups(evidence.after, "message_level").get(name)
    old, new = (value if isinstance(value, dict) else {} for value in (mine, theirs))
    if inside:
        return not same(old.get(key), new.get(key))
    return not same({k: v for k, v in old.items() if k != key}, {k: v for k, v in new.items() if k != key})


def messages_cached(evidence: Evidence) -> bool:
    """Whether the compared step had any message in the cache."""
    figures = evidence.figures
    if figures is None or evidence.anywhere or evidence.compared is None or not evidence.policy.needs_marks:
        return True
    return figures.mark is not None and figures.mark.section == "messages"


def listed_tools(prompt: Prompt) -> list[tuple[str, Json]]:
    """Name and definition of every tool; Gemini's lists of declarations are opened."""
    found: list[tuple[str, Json]] = []
    for item in prompt.tools:
        value = item.value
        holder = value if isinstance(value, dict) else {}
        declared = holder.get("functionDeclarations") or holder.get("function_declarations")
        if isinstance(declared, list):
            found += [(tool_name(tool), tool) for tool in declared]
        else:
            found.append((item.name, value))
    return found


def tool_marks(prompt: Prompt) -> list[tuple[str, bytes]]:
    """Name and digest of every tool, Gemini's lists of declarations opened; read from the body only for those."""
    if prompt.step.api != "gemini.generate_content":
        return [(block.name, block.digest) for block in prompt.step.tools.blocks]
    return [(name, dump_json(canonical(value))) for name, value in listed_tools(prompt)]


@lru_cache(maxsize=4096)
def server_of(tool: str) -> str | None:
    """The MCP server in a tool name of the form `mcp__server__tool`; None for other names."""
    parts = tool.split("__")
    return parts[1] if len(parts) >= 3 and parts[0] == "mcp" and parts[1] else None


def moved_servers(before: list[str], after: list[str]) -> tuple[list[str], bool]:
    """The servers whose own tools changed their sequence, and whether the merge of the servers changed."""
    old, new = _by_server(before), _by_server(after)
    moved = [server for server in old if server in new and old[server] != new[server]]
    merged = [server_of(name) or "" for name in before] != [server_of(name) or "" for name in after]
    return moved, merged


def _by_server(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(server_of(name) or "", []).append(name)
    return found


def tell_order(before: list[str], after: list[str]) -> str:
    """Which order moved: inside servers, between them, or both."""
    moved, merged = moved_servers(before, after)
    named = [server or "the tools without a server" for server in moved]
    if named == ["the tools without a server"] and len(_by_server(before)) == 1:
        return f"The same {len(after)} tools in another order."
    if moved and not merged:
        return (
            f"The same {len(after)} tools in another order: {join(named)} moved inside; the other servers stood still."
        )
    if not moved:
        return (
            f"The same {len(after)} tools in another order: each server kept its own, but they were merged differently."
        )
    both = f"{join(named)} moved inside, and the servers were merged differently"
    return f"The same {len(after)} tools in another order: {both}."


def join(names: list[str]) -> str:
    """Names as a list in a sentence."""
    if len(names) > 3:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_reasoning(value: Json) -> bool:
    """Whether a block or item holds the model's reasoning."""
    return isinstance(value, dict) and (
        kind_of(value) in _REASONING or "reasoningContent" in value or value.get("thought") is True
    )


def is_tool_result(value: Json) -> bool:
    """Whether a block, item or message is the result of a tool call."""
    if not isinstance(value, dict):
        return False
    return kind_of(value) in _RESULTS or value.get("role") == "tool"


def is_media(value: Json) -> bool:
    """Whether a block is an image, a document, audio or video."""
    return isinstance(value, dict) and (kind_of(value) in _MEDIA or any(key in value for key in _MEDIA_KEYS))
