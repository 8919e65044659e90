"""Two steps to the first byte that moved, and to every mover hidden behind it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from rebilled.errors import RecordError
from rebilled.model import Divergence, Json, SectionName
from rebilled.prompt import Item, Prompt, join_path, locate, own_path, tool_at
from rebilled.providers.content import canonical, in_order_of, is_cache_point
from rebilled.providers.elements import content_list
from rebilled.spans import common_prefix, dump_json

GROUPS = ("scope", "tools", "system", "message_level", "messages", "routing")
_EXCERPT = 72
_LEAD = 24
_MOST_MOVERS = 50
_TOKEN = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)


class Place(msgspec.Struct, frozen=True):
    """Where two trees first differ: the path as logged in the later one, and the two values there."""

    path: str
    before: Json
    after: Json


def divergences(before: Prompt, after: Prompt) -> Iterator[Divergence]:
    """Every place where the later step stops repeating the earlier one, in the order a cache meets them."""
    base = 0
    for group in GROUPS:
        if group in ("tools", "system", "messages"):
            name: SectionName = group  # type: ignore[assignment]
            yield from section_divergences(before, after, name, base)
            base += {"tools": after.step.tools.size, "system": after.step.sent_system.size}.get(group, 0)
        else:
            found = parameter_divergence(before, after, group)
            if found is not None:
                yield found


def same_section(before: Prompt, after: Prompt, name: SectionName) -> bool:
    """Whether a section shows no divergence; told from digests where they can tell."""
    mine, theirs = before.step, after.step
    if name == "tools":
        return mine.tools.digest == theirs.tools.digest
    if name == "system":
        return mine.sent_system.digest == theirs.sent_system.digest
    shared = shared_depth(before, after)
    if shared == mine.history.depth:
        return True
    if shared != mine.history.depth - 1 or shared >= theirs.history.depth:
        return False
    return only_gained_blocks(before.messages[shared].value, after.messages[shared].value)


def shared_depth(before: Prompt, after: Prompt) -> int:
    """How many leading messages two steps have in common."""
    depth = min(before.step.history.depth, after.step.history.depth)
    a, b = before.step.history.ancestor(depth), after.step.history.ancestor(depth)
    while a is not b:
        assert a.parent is not None
        assert b.parent is not None
        a, b = a.parent, b.parent
    return a.depth


def only_gained_blocks(before: Json, after: Json) -> bool:
    """Whether the later message is the earlier one with content blocks added at its end."""
    mine, theirs = content_list(before), content_list(after)
    if mine is None or theirs is None or not isinstance(before, dict) or not isinstance(after, dict):
        return False
    mine = [item for item in mine if not is_cache_point(item)]
    theirs = [item for item in theirs if not is_cache_point(item)]
    if len(theirs) < len(mine):
        return False
    key = "content" if isinstance(before.get("content"), list) else "parts"
    return same({**before, key: mine}, {**after, key: theirs[: len(mine)]})


def same(before: Json, after: Json) -> bool:
    """Whether two values are equal as the definition has it: key order counts in free-form JSON only."""
    return dump_json(canonical(before)) == dump_json(canonical(after))


# ---- one section -----------------------------------------------------------------------------------------------


def section_divergences(before: Prompt, after: Prompt, name: SectionName, base: int) -> Iterator[Divergence]:
    """The first divergence of a section, then the others as if each before were mended."""
    if same_section(before, after, name):
        return
    mine, theirs = before.section(name), after.section(name)
    first = shared_depth(before, after) if name == "messages" else _equal_leading(before, after, name)
    if name == "tools" and Counter(map(_key, before.step.tools.blocks)) == Counter(map(_key, after.step.tools.blocks)):
        yield _element_divergence(before, after, name, base, first, "reordered")
        return
    offset = _leading_bytes(after, name, first)
    change = _change(name, mine, theirs, first)
    yield _element_divergence(before, after, name, base, first, change, offset)
    yield from _hidden(before, after, name, base, first)


def _hidden(before: Prompt, after: Prompt, name: SectionName, base: int, first: int) -> Iterator[Divergence]:
    """The further elements of a section that differ, pairing tools by name and the rest by place."""
    mine, theirs = before.section(name), after.section(name)
    if name == "tools":
        by_name = {item.name: place for place, item in enumerate(mine)}
        pairs = [(by_name.get(item.name), place) for place, item in enumerate(theirs)]
    else:
        pairs = [(place, place) for place in range(min(len(mine), len(theirs)))]
    made = 0
    for a, b in pairs:
        if (a == first and b == first) or a is None or made >= _MOST_MOVERS or (name != "tools" and b <= first):
            continue
        if same(mine[a].value, theirs[b].value):
            continue
        if name == "messages" and a == len(mine) - 1 and only_gained_blocks(mine[a].value, theirs[b].value):
            continue
        made += 1
        yield _pair_divergence((before, mine[a]), (after, theirs[b]), name, _leading_bytes(after, name, b), base)


def _key(block: object) -> bytes:
    return block.digest  # type: ignore[attr-defined,no-any-return]


def _equal_leading(before: Prompt, after: Prompt, name: SectionName) -> int:
    mine = before.step.tools if name == "tools" else before.step.sent_system
    theirs = after.step.tools if name == "tools" else after.step.sent_system
    place = 0
    for a, b in zip(mine.blocks, theirs.blocks, strict=False):
        if a.digest != b.digest:
            break
        place += 1
    return place


def _leading_bytes(prompt: Prompt, name: SectionName, place: int) -> int:
    """Bytes of a section's first elements, with the comma behind the last of them."""
    if name == "messages":
        return prompt.step.history.ancestor(place).size + (1 if place else 0)
    blocks = (prompt.step.tools if name == "tools" else prompt.step.sent_system).blocks
    return sum(block.size for block in blocks[:place]) + place


def _change(name: SectionName, mine: list[Item], theirs: list[Item], place: int) -> str:
    if place >= len(theirs):
        return "removed"
    if place >= len(mine):
        return "added"
    if name == "tools":
        old, new = {item.name for item in mine}, {item.name for item in theirs}
        if mine[place].name != theirs[place].name:
            if theirs[place].name not in old:
                return "added"
            if mine[place].name not in new:
                return "removed"
            return "reordered"
    if _reserialized(mine[place].value, theirs[place].value):
        return "reserialized"
    return "edited"


def _reserialized(before: Json, after: Json) -> bool:
    return dump_json(sort_keys(before)) == dump_json(sort_keys(after))


def sort_keys(value: Json) -> Json:
    """The value with sorted keys and whole numbers without fraction: equal where two texts are the same JSON."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sort_keys(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _element_divergence(
    before: Prompt,
    after: Prompt,
    name: SectionName,
    base: int,
    place: int,
    change: str,
    offset: int | None = None,
) -> Divergence:
    mine, theirs = before.section(name), after.section(name)
    start = _leading_bytes(after, name, place) if offset is None else offset
    if place < len(mine) and place < len(theirs):
        return _pair_divergence((before, mine[place]), (after, theirs[place]), name, start, base, change=change)
    end = max(0, start - 1)  # one side ends here: the shared bytes stop before the comma
    if place >= len(theirs):
        path = theirs[-1].path if theirs else after.array_path(name)
        gone = mine[place]
        tool = gone.name if name == "tools" else None
        return _placed(
            Divergence(name, path, end, base + end, change=change, tool=tool, before=_cut(gone.text, 0), after="")
        )
    added = theirs[place]
    tool = added.name if name == "tools" else None
    raw = _start(after, added.path)
    return _placed(
        Divergence(
            name, added.path, end, base + end, raw_after=raw, change=change, tool=tool, after=_cut(added.text, 0)
        )
    )


def _placed(divergence: Divergence) -> Divergence:
    return divergence


def _pair_divergence(
    mine: tuple[Prompt, Item],
    theirs: tuple[Prompt, Item],
    name: SectionName,
    start: int,
    base: int,
    *,
    change: str | None = None,
) -> Divergence:
    (before, old), (after, new) = mine, theirs
    new_text = new.text
    old_text = dump_json(in_order_of(old.value, new.value))
    shared = common_prefix(old_text, new_text)
    place = first_difference(old.value, new.value, new.logged, new.path)
    if change is None:
        change = "reserialized" if _reserialized(old.value, new.value) else "edited"
    old_path = own_path(old, new, place.path[len(new.path) :])
    return Divergence(
        section=name,
        json_path=place.path,
        byte_offset=start + shared,
        prefix_offset=base + start + shared,
        raw_before=_raw_place(before, old_path, place),
        raw_after=_raw_place(after, place.path, place),
        tool=(tool_at(new, place.path) or None) if name == "tools" else None,
        change=change,
        before=_cut(old_text, shared),
        after=_cut(new_text, shared),
    )


def first_difference(before: Json, after: Json, logged: Json, path: str) -> Place:
    """The node where two trees first differ, walked in document order; paths and indices as logged.

    Object: where key names differ or one side ends first, the object itself. List: the first unequal element that
    both have, else the list. Values of unequal types: that node.
    """
    before = in_order_of(before, after)
    while True:
        step: tuple[str | int, Json, Json, Json] | None = None
        if isinstance(before, dict) and isinstance(after, dict):
            step = _unequal_member(before, after, logged)
        elif isinstance(before, list) and isinstance(after, list):
            step = _unequal_element(before, after, logged)
        if step is None:
            return Place(path, before, after)
        part, before, after, logged = step
        path = join_path(path, part)


def _unequal_member(
    before: dict[str, Json], after: dict[str, Json], logged: Json
) -> tuple[str | int, Json, Json, Json] | None:
    for mine, theirs in zip(before, after, strict=False):
        if mine != theirs:
            return None
        if dump_json(before[mine]) != dump_json(after[theirs]):
            return mine, before[mine], after[mine], logged.get(mine) if isinstance(logged, dict) else None
    return None


def _unequal_element(before: list[Json], after: list[Json], logged: Json) -> tuple[str | int, Json, Json, Json] | None:
    places = list(range(len(after)))
    if isinstance(logged, list):
        places = [place for place, item in enumerate(logged) if not is_cache_point(item)]
    for place, (mine, theirs) in enumerate(zip(before, after, strict=False)):
        if dump_json(mine) != dump_json(theirs):
            as_logged = places[place] if place < len(places) else place
            inner = logged[as_logged] if isinstance(logged, list) and as_logged < len(logged) else None
            return as_logged, mine, theirs, inner
    return None


# ---- parameters ------------------------------------------------------------------------------------------------


def parameter_divergence(before: Prompt, after: Prompt, group: str) -> Divergence | None:
    """The first parameter of a group that differs, None where the group is the same."""
    mine, theirs = parameter_groups(before, group), parameter_groups(after, group)
    mine = shared_scope(mine, theirs) if group == "scope" else mine
    names = changed_parameters(mine, theirs)
    if not names:
        return None
    name = names[0]
    old = dump_json({key: in_order_of(value, theirs.get(key)) for key, value in mine.items()})
    new = dump_json(dict(theirs))
    shared = common_prefix(old, new)
    path = name if name.startswith("meta.") else f"$.{name}"
    place = first_difference(mine.get(name), theirs.get(name), theirs.get(name), path)
    return Divergence(
        section="params",
        json_path=path,
        byte_offset=shared,
        group=group,
        raw_before=_raw_place(before, place.path, place) if name in mine else None,
        raw_after=_raw_place(after, place.path, place) if name in theirs else None,
        change="edited" if name in mine and name in theirs else "added" if name in theirs else "removed",
        before=_named(name, mine),
        after=_named(name, theirs),
    )


def parameter_groups(prompt: Prompt, group: str) -> Mapping[str, Json]:
    """The parameters of one group of a step."""
    params = prompt.step.params
    return {"scope": params.scope, "message_level": params.message_level, "routing": params.routing}[group]


def shared_scope(mine: Mapping[str, Json], theirs: Mapping[str, Json]) -> Mapping[str, Json]:
    """The earlier scope, with the later API key where both name a workspace: then the key does not count."""
    if "meta.workspace" not in mine or "meta.workspace" not in theirs:
        return mine
    names = [name for name in _ordered(mine, theirs) if name != "meta.api_key_fp" or name in theirs]
    return {
        name: theirs[name] if name == "meta.api_key_fp" else mine[name]
        for name in names
        if name in mine or name == "meta.api_key_fp"
    }


def _ordered(mine: Mapping[str, Json], theirs: Mapping[str, Json]) -> list[str]:
    from rebilled.providers.api import MESSAGE_LEVEL, ROUTING, SCOPE

    return [name for name in (*SCOPE, *MESSAGE_LEVEL, *ROUTING) if name in mine or name in theirs]


def changed_parameters(mine: Mapping[str, Json], theirs: Mapping[str, Json]) -> list[str]:
    """The names whose values differ, in the order of the definition."""
    return [
        name
        for name in _ordered(mine, theirs)
        if (name in mine) != (name in theirs) or not same(mine.get(name), theirs.get(name))
    ]


def _named(name: str, group: Mapping[str, Json]) -> str:
    return _cut(dump_json(group[name]), 0) if name in group else ""


# ---- excerpts and places in the body -----------------------------------------------------------------------------


def _cut(text: bytes, at: int) -> str:
    """A short excerpt around a byte, a few characters before it, with an ellipsis where it is cut."""
    start = max(0, at - _LEAD)
    while start > 0 and text[start] & 0xC0 == 0x80:
        start -= 1
    piece = text[start : start + _EXCERPT * 4].decode("utf-8", "replace")
    return (
        ("…" if start else "")
        + piece[:_EXCERPT]
        + ("…" if len(piece) > _EXCERPT or start + _EXCERPT * 4 < len(text) else "")
    )


def _start(prompt: Prompt, path: str) -> int | None:
    if not prompt.step.as_sent:
        return None
    try:
        return locate(prompt.layout, path)[0]
    except (RecordError, KeyError, IndexError, TypeError, ValueError):
        return None


def _raw_place(prompt: Prompt, path: str, place: Place) -> int | None:
    """The first differing byte in the body as logged: inside a text, else where the node stands."""
    start = _start(prompt, path)
    if start is None or not isinstance(place.before, str) or not isinstance(place.after, str):
        return start
    shared = common_prefix(dump_json(place.before), dump_json(place.after))
    at, passed = start + 1, 1
    tail = prompt.layout.raw[at : at + 6 * shared + 12].decode("utf-8", "replace")
    for match in _TOKEN.finditer(tail):
        if passed >= shared:
            break
        token = match[0]
        size, printed = len(token.encode("utf-8")), _printed(token)
        if passed + printed > shared:  # the first difference is inside this character
            return at + (shared - passed if size == printed else 0)
        passed += printed
        at += size
    return at


def _printed(token: str) -> int:
    """Bytes that a character of a raw JSON string takes in compact JSON."""
    if token[0] != "\\" or token[1] in '"\\bfnrt':
        return len(token.encode("utf-8"))
    if token[1] == "u":
        code = int(token.removeprefix("\\u"), 16)
        if code < 0x20:
            return 2 if code in (8, 9, 10, 12, 13) else 6
        if code in (0x22, 0x5C):
            return 2
        return 2 if 0xD800 <= code <= 0xDFFF else len(chr(code).encode("utf-8"))
    return 1
