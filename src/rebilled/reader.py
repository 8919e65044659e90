"""Records to steps: one pass that digests every request and keeps where its bytes can be read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rebilled.errors import RecordError
from rebilled.marks import asked_lifetimes, automatic_mark, section_marks, settle_writes, shift_system, with_lifetimes
from rebilled.model import (
    Breakpoint,
    Json,
    Node,
    Parameters,
    Record,
    Reply,
    Section,
    Skip,
    Source,
    Step,
    Usage,
)
from rebilled.nesting import wrapping
from rebilled.owner import user_in
from rebilled.providers import APIS, find_api
from rebilled.providers.api import Api, text_at
from rebilled.providers.elements import Elements
from rebilled.providers.faults import odd_counters
from rebilled.providers.hosts import provider_of
from rebilled.providers.options import read_options
from rebilled.spans import Layout, parse_json
from rebilled.stored import is_storing, key_of, read_storing
from rebilled.trace import CONVERSATION, Trace, layout_of, resolve_chains, settle_reads

_ANCHORS = 32
_ANCHOR_BYTES = 48 << 20
_MOST_OF_ONE_ID = 16
FIRST_PARTY = "api.anthropic.com"


class Reader(msgspec.Struct):
    """Turns records into steps, one by one; `finish` gives the trace."""

    trace: Trace = msgspec.field(default_factory=Trace)
    elements: Elements = msgspec.field(default_factory=Elements)
    anchors: list[Layout] = msgspec.field(default_factory=list)
    roots: dict[str, Node] = msgspec.field(default_factory=dict)
    by_response: dict[str, list[Step]] = msgspec.field(default_factory=dict)
    parameters: dict[tuple[object, ...], Parameters] = msgspec.field(default_factory=dict)
    clock: dict[str, float] = msgspec.field(default_factory=dict)
    order: list[float] = msgspec.field(default_factory=list)

    def add(self, item: Record | Skip) -> None:
        """Take in one record, or note what a format could not read."""
        if isinstance(item, Skip):
            self.trace.skipped.append(item)
            return
        if is_storing(item.url):
            self._note_stored(item)
            return
        self.trace.records += 1
        try:
            step = self._step(item)
        except RecordError as error:
            self._skip(item.source, error.reason, error.detail)
            return
        if step is not None:
            self.place(step)
            for odd in step.reply.odd:
                self._skip(item.source, "odd_usage", f"{odd}; it counts as 0, the rest of the call is read")

    def _skip(self, source: Source, reason: str, detail: str) -> None:
        self.trace.skipped.append(Skip(source.path, source.line, reason, detail))

    def _note_stored(self, record: Record) -> None:
        try:
            self.trace.stored.append(read_storing(record))
        except RecordError as error:
            self._skip(record.source, "no_request", error.detail)

    def place(self, step: Step) -> None:
        """Take in a step that was read, unless an earlier one is the same call."""
        ident = step.reply.response_id
        first = self.known(step)
        if first is not None:
            self._skip(step.source, "duplicate_record", f"response {ident} stands in {_where(first)} already")
            if _output(step.usage) > _output(first.usage):
                first.reply = step.reply
            return
        if ident:
            self.by_response.setdefault(ident, []).append(step)
        path = step.source.path
        at = step.started_at if step.started_at is not None else self.clock.get(path)
        if at is not None:
            self.clock[path] = at
        self.order.append(at if at is not None else float("-inf"))
        self.trace.steps.append(step)

    def known(self, step: Step) -> Step | None:
        """The step that was taken in before and is the same call; None where there is none."""
        earlier = self.by_response.get(step.reply.response_id or "", [])[-_MOST_OF_ONE_ID:]
        return next((other for other in earlier if not _other_call(other, step)), None)

    def root(self, api: str) -> Node:
        """The empty history of an API shape, which all of its histories grow from."""
        return self.roots.setdefault(api, Node(None, None))

    def finish(self) -> Trace:
        """The trace, its steps numbered in time order; steps without a time follow the one before them."""
        self._drop_wrappers()
        places = sorted(range(len(self.order)), key=lambda place: self.order[place])
        self.trace.steps = [self.trace.steps[place] for place in places]
        for number, step in enumerate(self.trace.steps, 1):
            step.number = number
        resolve_chains(self.trace.steps)
        settle_reads(self.trace.steps)
        return self.trace

    def _drop_wrappers(self) -> None:
        """Take out what only wraps other calls, so that each counts once."""
        dropped = {id(step) for step in wrapping(self.trace.steps)}
        if not dropped:
            return
        kept = []
        for step, at in zip(self.trace.steps, self.order, strict=True):
            if id(step) in dropped:
                self._skip(step.source, "duplicate_record", "a span around the calls inside it, which count")
            else:
                kept.append((step, at))
        self.trace.steps, self.order = [step for step, _ in kept], [at for _, at in kept]

    # ---- one record ------------------------------------------------------------------------------------------

    def _step(self, record: Record) -> Step | None:
        if record.body is None:
            return self._bodyless(record)
        layout = layout_of(record.body, self.anchors, key=self._likely_key(), repeated=record.repeated)
        api = self._api(layout, record)
        if api is None:
            raise RecordError("no_request", "the request body is of no API known here")
        reply = read_reply(api, record)
        root = self.root(api.name)
        previous = _goes_on_from(layout) if api.name == "openai.responses" else None
        head = self._system(api, layout, starts=previous is None)
        history, found = self._messages(api, layout, root, head)
        tools = self._tools(api, layout)
        system = head.full
        breakpoints = (*section_marks("tools", tools), *section_marks("system", system), *found)
        params = self._parameters(api, layout, record.meta)
        tag = _Anchor(api, history, head.leading, found, record.meta.get("provider"), path_of(record.url))
        self._remember(layout, tag, record.stem)
        endpoint, named = record.meta.get("endpoint"), _named(layout)
        options = read_options(layout)
        breakpoints = with_lifetimes(automatic_mark(layout, breakpoints, history, head.leading), options)
        step = Step(
            number=0,
            source=record.source,
            body=self.trace.bodies.keep(record),
            as_sent=record.as_sent,
            provider=provider_of(api, record),
            api=api.name,
            model=_model(layout, record, reply),
            tools=tools,
            system=system,
            history=history,
            params=params,
            breakpoints=breakpoints,
            reply=settle_writes(reply, asked_lifetimes(api, breakpoints, options)),
            meta=record.meta,
            bare_system=head.bare,
            attribution=head.line,
            drop_attribution=head.bare is not None and endpoint == FIRST_PARTY,
            leading=head.leading,
            previous_response=previous,
            asked_ttl_s=options.ttl_s,
            explicit_marks=options.explicit,
            members=layout.members if layout.raw is record.body else None,
            sessions=_sessions(named, record.meta),
            user=_user(named, layout),
            stored=_stored(api, layout),
            request_id=record.request_id,
            started_at=record.started_at,
            first_token_at=record.first_token_at,
            ended_at=record.ended_at,
        )
        if step.drop_attribution:
            step.breakpoints = shift_system(step.breakpoints)
        return step

    def _likely_key(self) -> str:
        tag = self.anchors[-1].tag if self.anchors else None
        return tag.api.messages_key if isinstance(tag, _Anchor) else "messages"

    def _api(self, layout: Layout, record: Record) -> Api | None:
        base = layout.shared_with
        tag = base.tag if base is not None else None
        hint = record.meta.get("provider")
        if (
            isinstance(tag, _Anchor)
            and base is not None
            and tag.hint == hint
            and tag.path == path_of(record.url)
            and list(base.members) == list(layout.members)
        ):
            return tag.api
        return find_api(layout, record.url or "", hint if isinstance(hint, str) else "")

    def _tools(self, api: Api, layout: Layout) -> Section:
        raw = layout.value(api.tools_parent or api.tools_key)
        if raw is None:
            return Section()
        return self.elements.tools(raw, lambda: (text for _, text in api.tool_items(layout)))

    def _system(self, api: Api, layout: Layout, *, starts: bool) -> _Head:
        raws = [raw for _, raw in api.system_items(layout)]
        leading = 0
        if api.leading_system and starts:
            spans = layout.elements(api.messages_key) or ()
            for start, end in spans:
                if self.elements.message(layout.raw[start:end]).message.role not in ("system", "developer"):
                    break
                raws.append(layout.raw[start:end])
                leading += 1
        read = self.elements.system_section(raws, attribution=api.provider == "anthropic")
        return _Head(read.full, read.bare, read.line, leading)

    def _messages(self, api: Api, layout: Layout, root: Node, head: _Head) -> tuple[Node, tuple[Breakpoint, ...]]:
        spans = layout.elements(api.messages_key)
        if spans is None:
            raw = layout.value(api.messages_key)
            if raw is None or raw == b"null":
                return root, ()
            return root.child(self.elements.message(raw).message), ()
        node, start, found = root, head.leading, list[Breakpoint]()
        base = layout.shared_with
        tag = base.tag if base is not None else None
        if isinstance(tag, _Anchor) and tag.api is api and tag.leading == head.leading:
            shared = layout.shared_elements - head.leading
            if layout.shared_key == api.messages_key and shared > 0:
                node, start = tag.history.ancestor(shared), layout.shared_elements
                found = [mark for mark in tag.marks if mark.element < layout.shared_elements]
        for place in range(start, len(spans)):
            first, last = spans[place]
            read = self.elements.message(layout.raw[first:last])
            node = node.child(read.message)
            found += [Breakpoint("messages", place, mark.block, mark.ttl_s) for mark in read.marks]
        return node, tuple(found)

    def _remember(self, layout: Layout, tag: _Anchor, stem: bytes) -> None:
        base = layout.shared_with
        layout.shared_with = None
        layout.tag, layout.stem = tag, stem
        self.anchors = [anchor for anchor in self.anchors if anchor is not base]
        if len(layout.raw) > _ANCHOR_BYTES // 4:
            return
        self.anchors.append(layout)
        while len(self.anchors) > _ANCHORS or sum(len(anchor.raw) for anchor in self.anchors) > _ANCHOR_BYTES:
            del self.anchors[0]

    def _parameters(self, api: Api, layout: Layout, meta: Mapping[str, Json]) -> Parameters:
        key = (api.name, *api.parameter_texts(layout, meta))
        found = self.parameters.get(key)
        if found is None:
            found = self.parameters[key] = api.parameters(layout, meta)
        return found

    def _bodyless(self, record: Record) -> Step:
        for api in apis_for(record):
            reply = read_reply(api, record)
            if reply.usage is not None:
                break
        else:
            raise RecordError("no_request", "neither a request body nor token counts")
        return Step(
            number=0,
            source=record.source,
            body=None,
            as_sent=False,
            provider=provider_of(api, record),
            api=api.name,
            model=reply.model or "",
            tools=Section(),
            system=Section(),
            history=self.root(""),
            params=_served_by(reply),
            breakpoints=_written_marks(reply),
            reply=reply,
            meta=record.meta,
            sessions=tuple(value for value in (record.meta.get("session"),) if isinstance(value, str)),
            request_id=record.request_id,
            started_at=record.started_at,
            first_token_at=record.first_token_at,
            ended_at=record.ended_at,
        )


class _Head(msgspec.Struct, frozen=True):
    """The system section of a body, and how many leading messages belong to it."""

    full: Section
    bare: Section | None
    line: bytes
    leading: int


class _Anchor(msgspec.Struct, frozen=True):
    """What is known of a body that later ones may repeat."""

    api: Api
    history: Node
    leading: int
    marks: tuple[Breakpoint, ...]
    hint: Json
    path: str


def _where(step: Step) -> str:
    line = f":{step.source.line}" if step.source.line is not None else ""
    return f"{step.source.path}{line}"


def _other_call(first: Step, step: Step) -> bool:
    """Whether two steps with one response id are two calls all the same: where a gateway gives every response one id.

    Other messages, both as they were sent, tell it; where a log has rebuilt them, another prompt with other tokens.
    """
    if first.body is None or step.body is None:
        return False
    if first.history is not step.history and first.api == step.api and first.as_sent and step.as_sent:
        return True
    if first.history is step.history and first.state == step.state:
        return False
    counts = first.usage, step.usage
    return counts[0] is not None and counts[1] is not None and counts[0].input_tokens != counts[1].input_tokens


def _output(usage: Usage | None) -> int:
    return usage.output_tokens if usage is not None else -1


def path_of(url: str | None) -> str:
    """What of an address says which API is called: all but the query."""
    return url.partition("?")[0] if url else ""


def apis_for(record: Record) -> list[Api]:
    """The APIs that may have answered a call without a body, the likeliest first: as the log says, else by its text."""
    hint = record.meta.get("provider")
    named = hint.lower().replace("-", ".").replace("_", ".") if isinstance(hint, str) else ""
    text = (record.response or b"") + b"".join(record.events[-2:])
    details = b'"input_tokens_details"' in text

    def rank(api: Api) -> tuple[bool, bool]:
        name = api.name.replace("_", ".")
        return (not named or named not in (name, name.split(".")[0]), details != (api.name == "openai.responses"))

    return sorted(APIS, key=rank)


def read_reply(api: Api, record: Record) -> Reply:
    """What a record's response says, through its API's reader."""
    response: Json = parse_json(record.response) if record.response is not None else None
    events = [parse_json(event) for event in record.events]
    reply = api.read_reply(response, events)
    odd = odd_counters(response, events[:1] + events[-2:])
    if odd:
        reply = msgspec.structs.replace(reply, odd=tuple(odd))
    if record.error and not reply.error:
        reply = msgspec.structs.replace(reply, error=record.error)
    if record.status is not None and record.status >= 400 and not reply.error:
        reply = msgspec.structs.replace(reply, error=f"HTTP {record.status}")
    return reply


def _model(layout: Layout, record: Record, reply: Reply) -> str:
    for key in ("model", "modelId"):
        raw = layout.value(key)
        if raw is not None and raw[:1] == b'"':
            value = parse_json(raw)
            if isinstance(value, str) and value:
                return value
    named = record.meta.get("model")
    if reply.model or isinstance(named, str):
        return reply.model or str(named)
    return _model_in_url(record.url or "")


def _text_member(layout: Layout, key: str) -> str | None:
    raw = layout.value(key)
    value = parse_json(raw) if raw is not None and raw[:1] == b'"' else None
    return value if isinstance(value, str) and value else None


def _goes_on_from(layout: Layout) -> str | None:
    """The response, or the stored conversation, that OpenAI holds in front of a request."""
    previous = _text_member(layout, "previous_response_id")
    raw = layout.value("conversation") if previous is None else None
    if raw is None:
        return previous
    named = parse_json(raw)
    ident = text_at(named, "id") if isinstance(named, dict) else named
    return f"{CONVERSATION}{ident}" if isinstance(ident, str) and ident else None


def _model_in_url(url: str) -> str:
    from urllib.parse import unquote

    for sign in ("/models/", "/model/", "/deployments/"):
        if sign in url:
            return unquote(
                url.split(sign, 1)[1].split("/")[0].split(":generate")[0].split(":stream")[0].split(":raw")[0]
            )
    return ""


def _named(layout: Layout) -> str:
    """The user that Anthropic's `metadata` names."""
    raw = layout.value("metadata")
    return text_at(parse_json(raw), "user_id") or "" if raw is not None and b"user_id" in raw else ""


def _sessions(named: str, meta: Mapping[str, Json]) -> tuple[str, ...]:
    found = (meta.get("session"), named)
    return tuple(dict.fromkeys(value for value in found if isinstance(value, str) and value))


def _user(named: str, layout: Layout) -> str:
    """Whose a body says that it is, in the fields of Anthropic and of OpenAI."""
    return user_in(named) if named else _text_member(layout, "safety_identifier") or _text_member(layout, "user") or ""


def _stored(api: Api, layout: Layout) -> str:
    """The key of the stored content that a Gemini prompt begins with."""
    if api.name != "gemini.generate_content":
        return ""
    return key_of(_text_member(layout, "cachedContent") or _text_member(layout, "cached_content"))


def _served_by(reply: Reply) -> Parameters:
    """The scope of a call whose body is not logged: the model that answered."""
    scope: dict[str, Json] = {"model": reply.model} if reply.model else {}
    return Parameters(scope=scope, scope_key=reply.model or "")


def _written_marks(reply: Reply) -> tuple[Breakpoint, ...]:
    """The lifetime that a call without a logged body asked for, told from what it wrote."""
    usage = reply.usage
    if usage is None or not usage.cache_write_tokens:
        return ()
    return (Breakpoint("messages", 0, 0, 3600 if usage.cache_write_1h_tokens else 300),)


def read_records(items: Iterable[Record | Skip]) -> Trace:
    """The trace of these records, steps in time order; lineage is not yet told."""
    reader = Reader()
    for item in items:
        reader.add(item)
    return reader.finish()
