"""The definition of a divergence, a compared step and the figures, written down as plainly as it reads.

Slow, and on purpose built of little but parsed JSON: the tests hold the product against it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebilled.normal import normal
from rebilled.prompt import texts_of

MARKS = ("cache_control", "prompt_cache_breakpoint")
FREE = {"input_schema", "parameters", "inputSchema", "input", "arguments", "args", "response", "json"}
SCOPE = (
    "model",
    "modelId",
    "meta.endpoint",
    "meta.region",
    "meta.workspace",
    "meta.api_key_fp",
    "meta.anthropic_beta",
    "speed",
    "service_tier",
)
ROUTING = ("prompt_cache_key", "prompt_cache_retention")
LEVEL = (
    "tool_choice",
    "thinking",
    "output_config",
    "reasoning",
    "reasoning_effort",
    "text",
    "response_format",
    "parallel_tool_calls",
    "toolConfig.toolChoice",
    "toolConfig",
    "generationConfig.thinkingConfig",
    "generationConfig.responseSchema",
)
ONLY = {
    "toolConfig": "gemini.generate_content",
    "toolConfig.toolChoice": "bedrock.converse",
    "generationConfig.thinkingConfig": "gemini.generate_content",
    "generationConfig.responseSchema": "gemini.generate_content",
}
MESSAGES_KEY = {
    "anthropic.messages": "messages",
    "openai.chat": "messages",
    "openai.responses": "input",
    "gemini.generate_content": "contents",
    "bedrock.converse": "messages",
}
SYSTEM_KEY = {
    "anthropic.messages": "system",
    "openai.chat": "messages",
    "openai.responses": "instructions",
    "gemini.generate_content": "systemInstruction",
    "bedrock.converse": "system",
}


def dumped(value: Any) -> bytes:
    """D(x)."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def is_point(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["cachePoint"]


def bare(value: Any) -> Any:
    """Without cache marks."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key not in MARKS}
    if isinstance(value, list):
        return [bare(item) for item in value if not is_point(item)]
    return value


def aligned(old: Any, new: Any) -> Any:
    """The earlier value in the later one's key order, outside free-form JSON."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = list(new) if set(old) == set(new) else list(old)
        return {k: old[k] if k in FREE or k not in new else aligned(old[k], new[k]) for k in keys}
    if isinstance(old, list) and isinstance(new, list):
        return [aligned(a, b) for a, b in zip(old, new, strict=False)] + old[len(new) :]
    return old


def equal(old: Any, new: Any) -> bool:
    return dumped(aligned(old, new)) == dumped(new)


@dataclass
class Element:
    path: str
    logged: Any

    @property
    def value(self) -> Any:
        return bare(self.logged)


@dataclass
class Body:
    """One body as the definition sees it."""

    api: str
    body: dict[str, Any]
    meta: Mapping[str, Any]
    drop_line: bool = False

    def listed(self, key: str, value: Any) -> list[Element]:
        if value is None:
            return []
        if isinstance(value, list):
            return [Element(f"$.{key}[{i}]", item) for i, item in enumerate(value) if not is_point(item)]
        return [Element(f"$.{key}", value)]

    @property
    def leading(self) -> int:
        if not self.api.startswith("openai"):
            return 0
        items = self.body.get(MESSAGES_KEY[self.api])
        count = 0
        for item in items if isinstance(items, list) else []:
            if not isinstance(item, dict) or item.get("role") not in ("system", "developer"):
                break
            count += 1
        return count

    def section(self, name: str) -> list[Element]:
        key = MESSAGES_KEY[self.api]
        if name == "tools":
            if self.api == "bedrock.converse":
                found = self.listed("toolConfig.tools", (self.body.get("toolConfig") or {}).get("tools"))
            else:
                found = self.listed("tools", self.body.get("tools"))
            return [e for e in found if not (isinstance(e.logged, dict) and e.logged.get("defer_loading") is True)]
        if name == "messages":
            return self.listed(key, self.body.get(key))[self.leading :]
        found = []
        if self.api != "openai.chat":
            found = self.listed(SYSTEM_KEY[self.api], self.body.get(SYSTEM_KEY[self.api]))
        if self.drop_line:
            found = found[1:]
        return found + self.listed(key, self.body.get(key))[: self.leading]

    def array_path(self, name: str) -> str:
        if name == "tools":
            return "$.toolConfig.tools" if self.api == "bedrock.converse" else "$.tools"
        return f"$.{SYSTEM_KEY[self.api] if name == 'system' else MESSAGES_KEY[self.api]}"

    def group(self, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            if ONLY.get(name, self.api) != self.api:
                continue
            value: Any = self.meta.get(name[5:]) if name.startswith("meta.") else self.body
            if not name.startswith("meta."):
                for part in name.split("."):
                    value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                found[name] = bare(value)
        return found


@dataclass(frozen=True)
class Where:
    section: str
    path: str
    offset: int
    group: str | None = None


def rendered(elements: Sequence[Element]) -> bytes:
    """R(section)."""
    return b",".join(dumped(element.value) for element in elements)


def prefix_of(old: bytes, new: bytes) -> int:
    return next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def content(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        for key in ("content", "parts"):
            if isinstance(value.get(key), list):
                found: list[Any] = value[key]
                return found
    return None


def gained(old: Any, new: Any) -> bool:
    """Whether the later message is the earlier one with blocks at its end."""
    mine, theirs = content(old), content(new)
    if mine is None or theirs is None or len(theirs) < len(mine):
        return False
    key = "content" if isinstance(old.get("content"), list) else "parts"
    return equal({**old, key: mine}, {**new, key: theirs[: len(mine)]})


def differs(name: str, mine: list[Element], theirs: list[Element]) -> bool:
    if name != "messages":
        return len(mine) != len(theirs) or any(not equal(a.value, b.value) for a, b in zip(mine, theirs, strict=True))
    if len(theirs) < len(mine):
        return True
    for place, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if not equal(a.value, b.value):
            return not (place == len(mine) - 1 and gained(a.value, b.value))
    return False


def walk(old: Any, new: Any, logged: Any, path: str) -> str:
    """The node where two trees first differ; `old` is in the later one's key order already."""
    if isinstance(old, dict) and isinstance(new, dict):
        for mine, theirs in zip(old, new, strict=False):
            if mine != theirs:
                return path
            if dumped(old[mine]) != dumped(new[mine]):
                return walk(old[mine], new[mine], logged[mine], joined(path, mine))
        return path
    if isinstance(old, list) and isinstance(new, list):
        places = [place for place, item in enumerate(logged) if not is_point(item)]
        for at, mine, theirs in zip(places, old, new, strict=False):
            if dumped(mine) != dumped(theirs):
                return walk(mine, theirs, logged[at], joined(path, at))
    return path


def joined(path: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{path}[{part}]"
    plain = part != "" and part.isprintable() and not set('.[]"\\ ') & set(part)
    return f"{path}.{part}" if plain else f"{path}[{dumped(part).decode('utf-8', 'replace')}]"


def section_divergence(name: str, before: Body, after: Body) -> Where | None:
    mine, theirs = before.section(name), after.section(name)
    if not differs(name, mine, theirs):
        return None
    old = [Element(a.path, aligned(a.value, b.value)) for a, b in zip(mine, theirs, strict=False)] + mine[len(theirs) :]
    offset = prefix_of(rendered(old), rendered(theirs))
    for a, b in zip(old, theirs, strict=False):
        if dumped(a.value) != dumped(b.value):
            return Where(name, walk(a.value, b.value, b.logged, b.path), offset)
    if len(theirs) > len(mine):
        return Where(name, theirs[len(mine)].path, offset)
    return Where(name, theirs[-1].path if theirs else after.array_path(name), offset)


def parameter_divergence(group: str, before: Body, after: Body) -> Where | None:
    names = {"scope": SCOPE, "message_level": LEVEL, "routing": ROUTING}[group]
    mine, theirs = before.group(names), after.group(names)
    if group == "scope" and "meta.workspace" in mine and "meta.workspace" in theirs:
        mine = {n: theirs[n] if n == "meta.api_key_fp" else mine[n] for n in names if n in _with_key(mine, theirs)}
    old = {key: aligned(value, theirs.get(key)) for key, value in mine.items()}
    if dumped(old) == dumped(theirs):
        return None
    for name in names:
        if (name in old) != (name in theirs) or (name in old and dumped(old[name]) != dumped(theirs[name])):
            path = name if name.startswith("meta.") else f"$.{name}"
            return Where("params", path, prefix_of(dumped(old), dumped(theirs)), group)
    raise AssertionError("the groups differ, their members do not")


def _with_key(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> set[str]:
    key = {"meta.api_key_fp"}
    return (set(mine) - key) | (set(theirs) & key)


def first_divergence(before: Body, after: Body) -> Where | None:
    """The first difference, in the order of the definition."""
    for name in ("scope", "tools", "system", "message_level", "messages", "routing"):
        if name in ("tools", "system", "messages"):
            found = section_divergence(name, before, after)
        else:
            found = parameter_divergence(name, before, after)
        if found is not None:
            return found
    return None


def prompt_bytes(body: Body) -> int:
    return sum(len(rendered(body.section(name))) for name in ("tools", "system", "messages"))


# ---- which step is compared with which -----------------------------------------------------------------------------


@dataclass
class Call:
    """One request with its tokens: total, read, written; None where the log has no usage."""

    body: Body
    tokens: tuple[int, int, int] | None = None
    sessions: tuple[str, ...] = ()

    @property
    def messages(self) -> list[Any]:
        return [element.value for element in self.body.section("messages")]

    def same(self, other: Call, *, level: bool) -> bool:
        """Equal scope, tools and system; with `level`, also equal message-level parameters."""
        if parameter_divergence("scope", other.body, self.body) is not None:
            return False
        if level and parameter_divergence("message_level", other.body, self.body) is not None:
            return False
        names = ("tools", "system")
        return not any(differs(name, other.body.section(name), self.body.section(name)) for name in names)


def first_user(call: Call) -> Any:
    return next((m for m in call.messages if isinstance(m, str) or m.get("role") == "user"), None)


def ids(call: Call) -> set[str]:
    """Message and tool-call ids."""
    found = set()
    for message in call.messages:
        if not isinstance(message, dict):
            continue
        holders = [message, *(content(message) or []), *(message.get("tool_calls") or [])]
        for holder in holders:
            for part in (holder, holder.get("toolUse"), holder.get("toolResult"), holder.get("functionCall")):
                for key in ("id", "tool_use_id", "call_id", "tool_call_id", "toolUseId"):
                    if isinstance(part, dict) and isinstance(part.get(key), str):
                        found.add(part[key])
    return found


def leading(one: Call, other: Call) -> int:
    """How many leading messages are equal."""
    count = 0
    for a, b in zip(one.messages, other.messages, strict=False):
        if not equal(a, b):
            break
        count += 1
    return count


def continues(later: Call, earlier: Call) -> bool:
    if later.body.api != earlier.body.api:
        return False
    mine, theirs = first_user(later), first_user(earlier)
    if mine is not None and theirs is not None and equal(theirs, mine):
        return True
    if ids(later) & ids(earlier):
        return True
    return bool(set(later.sessions) & set(earlier.sessions)) and later.same(earlier, level=False)


def compared(calls: Sequence[Call]) -> list[int | None]:
    """For each call the number, from 1, of the one it is compared with; lifetimes are taken to be endless."""
    return [_compared(calls, place) for place in range(len(calls))]


def _compared(calls: Sequence[Call], place: int) -> int | None:
    step = calls[place]
    silent = all(call.tokens is None for call in calls)  # a log without any usage: every step may be compared with
    earlier = [at for at in range(place) if silent or calls[at].tokens is not None]
    found = [at for at in earlier if continues(step, calls[at])]
    same = [at for at in found if step.same(calls[at], level=True)]
    if same:

        def rank(at: int) -> tuple[int, bool, int]:
            count = leading(calls[at], step)
            return count, count == len(calls[at].messages), at

        whole = max(same, key=rank)
        again = _rewritten(calls, place, whole, same)
        return (whole if again is None else again) + 1
    if found:
        return max(found, key=lambda at: (leading(calls[at], step), at)) + 1
    fronts = [at for at in earlier if calls[at].body.api == step.body.api and _resembles(step, calls[at])]
    best = max(fronts, key=lambda at: (shared_prefix(calls[at], step), -at), default=None)
    return None if best is None or shared_prefix(calls[best], step) < 1000 else best + 1


def _rewritten(calls: Sequence[Call], place: int, best: int, same: Sequence[int]) -> int | None:
    """A later call than the best one that shares as much, and of whose further messages some stand here again."""
    step, whole = calls[place], calls[best]
    count = leading(whole, step)
    if count == 0 or count != len(whole.messages):
        return None
    for at in reversed([at for at in same if at > best]):
        other = calls[at]
        further = other.messages[count + 1 :] if leading(other, step) == count else []
        if any(equal(a, b) for a in further for b in step.messages[count:]):
            return at
    return None


def rewritten(calls: Sequence[Call], place: int) -> set[int]:
    """Steps that a step may be compared with instead of one whose messages all stand in it.

    Where a later step of the same state went on from there, and this one repeats some of it behind a changed message,
    the change is judged against that later step: the loss would not be seen otherwise.
    """
    step, whole = calls[place], _compared(calls, place)
    if whole is None:
        return set()
    depth = len(calls[whole - 1].messages)
    mine = [dumped(bare(message)) for message in step.messages[depth:]]
    found = set()
    for at in range(whole, place):
        other = calls[at]
        goes_on = len(other.messages) > depth and leading(calls[whole - 1], other) == depth
        if (other.tokens or all(call.tokens is None for call in calls)) and goes_on and step.same(other, level=True):
            repeats = any(dumped(message) in mine for message in other.messages[depth + 1 :])
            found |= {at + 1} if repeats else set()
    return found


def _resembles(step: Call, other: Call) -> bool:
    if set(step.sessions) & set(other.sessions):
        return True
    mine, theirs = rendered(step.body.section("system")), rendered(other.body.section("system"))
    if not differs("system", other.body.section("system"), step.body.section("system")):
        return True
    front = prefix_of(mine, theirs)
    back = min(prefix_of(mine[::-1], theirs[::-1]), min(len(mine), len(theirs)) - front)
    return (front + back) * 2 >= max(len(mine), len(theirs))


def shared_prefix(earlier: Call, later: Call) -> int:
    """Leading bytes of tools, system and messages that are the same."""
    shared = 0
    for name in ("tools", "system", "messages"):
        mine, theirs = rendered(earlier.body.section(name)), rendered(later.body.section(name))
        if mine != theirs:
            return shared + prefix_of(mine, theirs)
        shared += len(mine)
    return shared


# ---- figures -------------------------------------------------------------------------------------------------------

MARKED = ("anthropic.messages", "bedrock.converse")
Position = tuple[int, int, int]


@dataclass(frozen=True)
class Block:
    """One tool, system entry or content block, where it stands, and whether a cache mark ends it."""

    at: Position
    role: str
    value: Any
    name: str = ""
    marked: bool = False

    @property
    def size(self) -> int:
        return len(dumped(self.value))


def has_mark(value: Any) -> bool:
    if isinstance(value, dict):
        return "cache_control" in value or any(map(has_mark, value.values()))
    return isinstance(value, list) and any(map(has_mark, value))


def name_of(tool: Any) -> str:
    holders = (tool, tool.get("function"), tool.get("toolSpec"))
    return next((str(holder["name"]) for holder in holders if holder and "name" in holder), "")


def blocks(body: Body) -> list[Block]:
    """Every block of a prompt, in order."""
    found: list[Block] = []
    for rank, name in enumerate(("tools", "system")):
        logged = _logged(body, name)
        for place, element in enumerate(body.section(name)):
            marked = has_mark(element.logged) or _point_behind(logged, element.logged)
            tool = name_of(element.value) if rank == 0 else ""
            found.append(Block((rank, place, 0), name, element.value, tool, marked))
    for place, element in enumerate(body.section("messages")):
        items = content(element.logged)
        role = element.value.get("role") or element.value["type"] if isinstance(element.value, dict) else "user"
        if items is None:
            found.append(Block((2, place, 0), role, element.value, "", has_mark(element.logged)))
            continue
        kept = [item for item in items if not is_point(item)]
        for number, item in enumerate(kept):
            marked = has_mark(item) or _point_behind(items, item)
            found.append(Block((2, place, number), role, bare(item), "", marked))
    return found


def _logged(body: Body, name: str) -> list[Any]:
    key = "tools" if name == "tools" else SYSTEM_KEY[body.api]
    holder = body.body.get("toolConfig", {}) if body.api == "bedrock.converse" and name == "tools" else body.body
    value = holder.get(key)
    return value if isinstance(value, list) else []


def _point_behind(items: list[Any], item: Any) -> bool:
    """Whether a Bedrock cache point stands right behind this very item."""
    place = next((at for at, other in enumerate(items) if other is item), None)
    return place is not None and place + 1 < len(items) and is_point(items[place + 1])


def half(mine: bytes, theirs: bytes) -> bool:
    """Whether half of my bytes stand in a common prefix and suffix."""
    front = prefix_of(mine, theirs)
    back = min(prefix_of(mine[::-1], theirs[::-1]), min(len(mine), len(theirs)) - front)
    return (front + back) * 2 >= len(mine)


def words_of(value: Any) -> str:
    return " ".join(texts_of(value).split())


def lost(block: Block, theirs: list[Block]) -> int:
    """Bytes of a block that stand nowhere in the later prompt."""
    rank = block.at[0]
    same = [other for other in theirs if other.at[0] == rank]
    if rank == 0:
        counterpart = [other for other in same if other.name == block.name]
    else:
        counterpart = [other for other in same if equal(block.value, other.value)]
        counterpart = counterpart or [other for other in same if normal(block.value) == normal(other.value)]
        counterpart = counterpart or [
            other
            for other in same
            if (other.at, other.role) == (block.at, block.role)
            and half(dumped(aligned(block.value, other.value)), dumped(other.value))
        ]
        text = words_of(block.value)
        counterpart = counterpart or [other for other in same if text and text in words_of(other.value)]
    return max(0, block.size - counterpart[0].size) if counterpart else block.size


def figures(before: Call, after: Call, *, starts: bool, grain: int = 1) -> tuple[int, int]:
    """Re-billed tokens and uncached repeat of a step; `grain` is what cached figures are rounded down to."""
    assert before.tokens is not None
    assert after.tokens is not None
    total, read_before, written = before.tokens
    later_total, read, _ = after.tokens
    mine, theirs = blocks(before.body), blocks(after.body)
    automatic = before.body.api not in MARKED
    last = (3, 0, 0) if automatic else max((b.at for b in mine if b.marked), default=(-1, 0, 0))
    per_byte = total / prompt_bytes(before.body)
    gone = sum(lost(block, theirs) for block in mine if block.at <= last) * per_byte
    everything = sum(lost(block, theirs) for block in mine) * per_byte
    cached = read_before + written if not automatic else total // grain * grain
    expected = min(cached - gone, later_total)
    if starts:
        fronts = [len(rendered(before.body.section(name))) for name in ("tools", "system")]
        if last[0] < 2:
            upto = [[b.size for b in mine if b.at[0] == rank and b.at <= last] for rank in (0, 1)]
            fronts = [sum(sizes) + max(0, len(sizes) - 1) for sizes in upto]
        expected = min(expected, sum(fronts) * per_byte)
    repeat = min(total - everything, later_total)
    return max(0, round(expected - read)), max(0, round(repeat - read))
