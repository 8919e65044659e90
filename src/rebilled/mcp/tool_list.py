"""A tool list as a value: pages put together, hints read, order and bytes held still."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rebilled.errors import InputError
from rebilled.mcp.meaning import canonical, parsed, printed
from rebilled.mcp.tool_rules import header_faults

ToolObject = dict[str, Any]

PUBLIC, PRIVATE = "public", "private"
NAME, SERVER = "name", "server"
_MOST_TTL_MS = 10**15
_MOST_FROZEN = 10_000
_SECOND = "a second tool of this name"


def check_order(order: str | Sequence[str]) -> None:
    """Raises InputError for an order that is neither `name` nor `server` nor a list of names."""
    if isinstance(order, str):
        if order not in (NAME, SERVER):
            raise InputError(f"order is {order!r}; give {NAME!r}, {SERVER!r}, or a list of tool names")
    elif not all(isinstance(name, str) for name in order):
        raise InputError("order holds something that is no text; give the names of tools")


class Policy(msgspec.Struct, frozen=True):
    """How long a list is kept. Times in milliseconds.

    default_ttl_ms: for a list without a hint. min_ttl_ms: a floor under every hint, 0 for none; the specification wants
    a ttl of 0 to mean what it says, so a floor is your own choice. max_ttl_ms: a ceiling over every hint.
    stale_if_error_ms: how long an expired list may still serve where a fetch fails, at most max_ttl_ms.
    share_public: one list for all callers where the server says that it is public; off, as a mislabelled list would go
    to everybody. order: `name`, by code points of the names; `server`, as the server sends them; or names, which stand
    in front in this order. http: leave out tools whose header annotations are not valid, as a client over HTTP must.
    Raises InputError for times or an order that cannot be kept to.
    """

    default_ttl_ms: int = 0
    min_ttl_ms: int = 0
    max_ttl_ms: int = 600_000
    stale_if_error_ms: int = 0
    share_public: bool = False
    order: str | tuple[str, ...] = NAME
    http: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be kept to."""
        for name in ("default_ttl_ms", "min_ttl_ms", "max_ttl_ms", "stale_if_error_ms"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; give milliseconds from 0 on")
        for name in ("min_ttl_ms", "stale_if_error_ms"):
            if getattr(self, name) > self.max_ttl_ms:
                raise InputError(f"{name} is over max_ttl_ms, {self.max_ttl_ms}; give a smaller one, or raise that")
        check_order(self.order)

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
        found: list[ToolObject] = parsed(self.data)
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
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        shorter = min(value, _MOST_TTL_MS)
        if shorter == int(shorter) and value != float("inf"):
            return int(shorter)
    warnings.append("ttlMs is not a whole number from 0 on; taken as 0")
    return 0


def usable(pages: Iterable[Mapping[str, Any]], *, http: bool) -> tuple[list[ToolObject], list[Excluded]]:
    """The tools of all pages that can be used, and those that cannot: one bad tool never costs the others.

    Of several tools with one name it is the same one that is kept, whatever order they come in.
    """
    kept: dict[str, tuple[int, bytes, ToolObject]] = {}
    left: list[Excluded] = []
    for place, item in enumerate(_listed(pages)):
        reason = _fault(item, http=http)
        name = item.get("name") if isinstance(item, dict) else None
        if reason:
            left.append(Excluded(place, name if isinstance(name, str) else "", reason))
            continue
        meaning, known = canonical(item), kept.get(item["name"])
        if known is not None:
            left.append(Excluded(place if meaning >= known[1] else known[0], item["name"], _SECOND))
        if known is None or meaning < known[1]:
            kept[item["name"]] = (place, meaning, item)
    found = [copy.deepcopy(item) for _, _, item in sorted(kept.values(), key=lambda one: one[0])]
    return found, sorted(left, key=lambda one: one.place)


def _listed(pages: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    for page in pages:
        listed = page.get("tools")
        yield from listed if isinstance(listed, list) else ()


def _fault(item: Any, *, http: bool) -> str:
    if not isinstance(item, dict):
        return "not an object"
    if not isinstance(item.get("name"), str) or not item["name"]:
        return "no name"
    if not _is_json(item):
        return "not JSON"
    rules = header_faults(item.get("inputSchema")) if http else []
    return f"x-mcp-header breaks rule {rules[0]}" if rules else ""


def _is_json(item: ToolObject) -> bool:
    try:
        canonical(item)
    except (TypeError, ValueError):
        return False
    return True


# ---- order and bytes ---------------------------------------------------------------------------------------------


def in_order(tools: Iterable[ToolObject], order: str | Sequence[str]) -> list[ToolObject]:
    """The tools by code points of their names, as they came, or first those that are named, in that order."""
    listed = list(tools)
    if order == SERVER:
        return listed
    first = {} if isinstance(order, str) else {name: place for place, name in reversed(list(enumerate(order)))}
    return sorted(listed, key=lambda tool: (first.get(tool["name"], len(order)), tool["name"], canonical(tool)))


class Freezer:
    """Keeps the first serialisation of each tool, for every list in which a tool means the same."""

    def __init__(self, most: int = _MOST_FROZEN) -> None:
        self._most = most
        self._frozen: OrderedDict[bytes, bytes] = OrderedDict()

    def frozen(self, tools: Iterable[ToolObject]) -> bytes:
        """The tools as one JSON array; what was sent before and means the same keeps its bytes."""
        data = b"[" + b",".join([self._tool(tool) for tool in tools]) + b"]"
        while len(self._frozen) > self._most:
            self._frozen.popitem(last=False)
        return data

    def _tool(self, tool: ToolObject) -> bytes:
        meaning = hashlib.sha256(canonical(tool)).digest()
        found = self._frozen.get(meaning)
        if found is None:
            found = self._frozen[meaning] = printed(tool)
        self._frozen.move_to_end(meaning)
        return found


def merge_tool_lists(
    lists: Mapping[str, ToolList],
    *,
    name: str = "mcp__{server}__{tool}",
    excluded: dict[str, list[Excluded]] | None = None,
) -> bytes:
    """The tools of several servers as one JSON array in an order that no server's answer time can move.

    Servers stand by their alias, the tools of each as its list has them.
    lists: by the alias of the server. name: how a tool is called in the merged list. excluded: takes in, where it is
    given, the tools by alias that would have the name of one before them; they are left out, so that no server costs
    the others their tools.
    Raises ValueError where two tools would have one name and `excluded` was not given.
    """
    parts: list[bytes] = []
    seen: dict[str, str] = {}
    for server in sorted(lists):
        for place, tool in enumerate(lists[server].tools):
            called = name.format(server=server, tool=tool["name"])
            if called not in seen:
                seen[called] = server
                parts.append(printed({**tool, "name": called}))
            elif excluded is None:
                raise ValueError(f"{called!r} would be a tool of {seen[called]} and of {server}; choose other aliases")
            else:
                reason = f"would be called {called}, as a tool of {seen[called]} is"
                excluded.setdefault(server, []).append(Excluded(place, tool["name"], reason))
    return b"[" + b",".join(parts) + b"]"


def tool_list_result(
    tools: Iterable[Mapping[str, Any]],
    *,
    varies_by_caller: bool,
    ttl_ms: int = 300_000,
    order: str | Sequence[str] = NAME,
    next_cursor: str | None = None,
) -> dict[str, Any]:
    """A tools/list result as a server should send it: a stable order, how long it holds, and who may share it.

    varies_by_caller: True where another caller may get another list. ttl_ms: how long the list holds, in milliseconds.
    order: `name`; `server` where the tools come in an order that is meant and never moves; or names that stand first.
    Raises ValueError for a ttl that is no whole number from 0 on, and for a tool without a name.

    The rule is AGT-17 of the Agent Wranglers agents as users playbook, CC BY 4.0:
    https://agentwranglers.se/playbook/agents-as-users/mcp-servers/list-cache-hints
    """
    if not isinstance(ttl_ms, int) or isinstance(ttl_ms, bool) or ttl_ms < 0:
        raise ValueError(f"ttl_ms is {ttl_ms!r}; give whole milliseconds from 0 on")
    check_order(order)
    listed = [dict(tool) for tool in tools]
    for place, tool in enumerate(listed):
        if not isinstance(tool.get("name"), str):
            raise ValueError(f"the tool at place {place} has no name; give every tool one")
    found: dict[str, Any] = {
        "resultType": "complete",
        "tools": in_order(listed, order),
        "ttlMs": ttl_ms,
        "cacheScope": PRIVATE if varies_by_caller else PUBLIC,
    }
    if next_cursor is not None:
        found["nextCursor"] = next_cursor
    return found
