"""A tool list as a value: pages put together, hints read, order and bytes held still."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from rebilled.mcp.tool_rules import header_faults

ToolObject = dict[str, Any]

PUBLIC, PRIVATE = "public", "private"
_MOST_TTL_MS = 1e15
_MOST_FROZEN = 10_000


class Policy(msgspec.Struct, frozen=True):
    """How long a list is kept. Times in milliseconds.

    default_ttl_ms: for a list without a hint. min_ttl_ms: a floor under every hint, 0 for none; the specification wants
    a ttl of 0 to mean what it says, so a floor is your own choice. max_ttl_ms: a ceiling over every hint.
    stale_if_error_ms: how long an expired list may still serve where a fetch fails. share_public: one list for all
    callers where the server says that it is public; off, as a mislabelled list would go to everybody.
    order: `name`, by code points of the names; `server`, as the server sends them. http: leave out tools whose header
    annotations are not valid, as a client over HTTP must.
    """

    default_ttl_ms: int = 0
    min_ttl_ms: int = 0
    max_ttl_ms: int = 600_000
    stale_if_error_ms: int = 0
    share_public: bool = False
    order: str = "name"
    http: bool = False

    def lifetime_ms(self, hinted: int | None) -> int:
        """How long a list with this hint is kept."""
        wanted = self.default_ttl_ms if hinted is None else hinted
        return max(self.min_ttl_ms, min(wanted, self.max_ttl_ms))


MODERN = Policy()
"""For servers of the 2026-07-28 revision, which must send hints: none is taken as 0."""
LEGACY = Policy(default_ttl_ms=60_000)
"""For older revisions, where no hint is correct behaviour: a minute."""
GATEWAY = Policy(default_ttl_ms=60_000, min_ttl_ms=1_000, max_ttl_ms=600_000)
"""For a gateway in front of many tenants: no hint is a minute, hints are clamped to 1 s to 10 min; a private list is
kept for each tenant."""


class Excluded(msgspec.Struct, frozen=True):
    """A tool that was left out: its place in the list, its name where it has one, and why."""

    place: int
    name: str
    reason: str


class Hints(msgspec.Struct, frozen=True):
    """What a list says about its own keeping: the ttl of each page, None where it has none, and who may share it."""

    ttls_ms: tuple[int | None, ...]
    scope: str
    warnings: tuple[str, ...] = ()


class ToolList(msgspec.Struct, frozen=True):
    """A complete tool list.

    data: the tools as compact JSON, equal to the byte while their meaning is equal. stale: it has expired and the
    server cannot be asked.
    """

    data: bytes
    scope: str
    ttl_ms: int
    excluded: tuple[Excluded, ...] = ()
    warnings: tuple[str, ...] = ()
    stale: bool = False

    @property
    def tools(self) -> list[ToolObject]:
        """The tools, a copy of one's own each time."""
        found: list[ToolObject] = orjson.loads(self.data)
        return found

    @property
    def names(self) -> list[str]:
        """The names of the tools, in order."""
        return [tool["name"] for tool in self.tools]


# ---- one list from its pages -------------------------------------------------------------------------------------


def read_hints(pages: Sequence[Mapping[str, Any]]) -> Hints:
    """The hints of a whole list: the ttl of each page; private where any page is not public."""
    warnings: list[str] = []
    ttls = tuple(_ttl(page.get("ttlMs"), warnings) for page in pages)
    scopes = [page.get("cacheScope") for page in pages]
    if any(scope is not None and scope not in (PUBLIC, PRIVATE) for scope in scopes):
        warnings.append("cacheScope is neither public nor private; taken as private")
    public = bool(scopes) and all(scope == PUBLIC for scope in scopes)
    return Hints(ttls, PUBLIC if public else PRIVATE, tuple(dict.fromkeys(warnings)))


def _ttl(value: object, warnings: list[str]) -> int | None:
    """A ttl in whole milliseconds, None where there is none; what is not a number from 0 on counts as 0."""
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and 0 <= value < _MOST_TTL_MS and value == int(value):  # type: ignore[operator, call-overload]
        return int(value)  # type: ignore[call-overload, no-any-return]
    warnings.append("ttlMs is not a whole number from 0 on; taken as 0")
    return 0


def usable(pages: Iterable[Mapping[str, Any]], *, http: bool) -> tuple[list[ToolObject], list[Excluded]]:
    """The tools of all pages that can be used, and those that cannot: one bad tool never costs the others."""
    kept: list[ToolObject] = []
    left: list[Excluded] = []
    seen: set[str] = set()
    place = -1
    for page in pages:
        listed = page.get("tools")
        for item in listed if isinstance(listed, list) else ():
            place += 1
            reason = _fault(item, seen, http=http)
            name = item.get("name") if isinstance(item, dict) else None
            if reason:
                left.append(Excluded(place, name if isinstance(name, str) else "", reason))
            else:
                seen.add(item["name"])
                kept.append(copy.deepcopy(item))
    return kept, left


def _fault(item: Any, seen: set[str], *, http: bool) -> str:
    if not isinstance(item, dict):
        return "not an object"
    if not isinstance(item.get("name"), str) or not item["name"]:
        return "no name"
    if item["name"] in seen:
        return "a second tool of this name"
    if not _is_json(item):
        return "not JSON"
    rules = header_faults(item.get("inputSchema")) if http else []
    return f"x-mcp-header breaks rule {rules[0]}" if rules else ""


def _is_json(item: ToolObject) -> bool:
    try:
        orjson.dumps(item)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True


# ---- order and bytes ---------------------------------------------------------------------------------------------


def canonical(value: object) -> bytes:
    """Equal bytes for equal JSON, whatever the order of its keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def in_order(tools: Iterable[ToolObject], order: str) -> list[ToolObject]:
    """The tools by code points of their names, or as they came."""
    listed = list(tools)
    return sorted(listed, key=lambda tool: (tool["name"], canonical(tool))) if order == "name" else listed


class Freezer:
    """Keeps the first serialisation of each tool for as long as the tool means the same."""

    def __init__(self) -> None:
        self._frozen: dict[str, tuple[bytes, bytes]] = {}

    def frozen(self, tools: Iterable[ToolObject]) -> bytes:
        """The tools as one JSON array; what was sent before and means the same keeps its bytes."""
        parts = []
        if len(self._frozen) > _MOST_FROZEN:
            self._frozen.clear()
        for tool in tools:
            meaning = canonical(tool)
            known = self._frozen.get(tool["name"])
            if known is None or known[0] != meaning:
                known = self._frozen[tool["name"]] = (meaning, orjson.dumps(tool))
            parts.append(known[1])
        return b"[" + b",".join(parts) + b"]"


def merge_tool_lists(lists: Mapping[str, ToolList], *, name: str = "mcp__{server}__{tool}") -> bytes:
    """The tools of several servers as one JSON array in an order that no server's answer time can move.

    lists: by the alias of the server. name: how a tool is called in the merged list.
    Raises ValueError where two tools would have one name.
    """
    parts: list[bytes] = []
    seen: dict[str, str] = {}
    for server in sorted(lists):
        for tool in in_order(lists[server].tools, "name"):
            called = name.format(server=server, tool=tool["name"])
            if called in seen:
                raise ValueError(f"{called!r} would be a tool of {seen[called]} and of {server}; choose other aliases")
            seen[called] = server
            parts.append(orjson.dumps({**tool, "name": called}))
    return b"[" + b",".join(parts) + b"]"


def tool_list_result(
    tools: Iterable[Mapping[str, Any]],
    *,
    varies_by_caller: bool,
    ttl_ms: int = 300_000,
    next_cursor: str | None = None,
) -> dict[str, Any]:
    """A tools/list result as a server should send it: a stable order, how long it holds, and who may share it.

    varies_by_caller: True where another caller may get another list. ttl_ms: how long the list holds, in milliseconds.
    Raises ValueError for a ttl below 0.

    The rule is AGT-17 of the Agent Wranglers agents as users playbook, CC BY 4.0:
    https://agentwranglers.se/playbook/agents-as-users/mcp-servers/list-cache-hints
    """
    if ttl_ms < 0:
        raise ValueError(f"ttl_ms is {ttl_ms}; give milliseconds from 0 on")
    found: dict[str, Any] = {
        "resultType": "complete",
        "tools": in_order((dict(tool) for tool in tools), "name"),
        "ttlMs": ttl_ms,
        "cacheScope": PRIVATE if varies_by_caller else PUBLIC,
    }
    if next_cursor is not None:
        found["nextCursor"] = next_cursor
    return found
