"""The values that pass between the parts: what was read, what it means, what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
SectionName = Literal["tools", "system", "messages", "params", "none"]
Confidence = Literal["confirmed", "likely", "possible"]
TokenMethod = Literal["reported", "calibrated", "estimated"]


# ---- what was read ---------------------------------------------------------------------------------------------


class Source(msgspec.Struct, frozen=True):
    """Where a record stands: its file, its 1-based line (or place in a document) and its first byte."""

    path: str
    line: int | None = None
    byte_offset: int | None = None


class Skip(msgspec.Struct, frozen=True):
    """Something in the input that gave no step, with the reason as one word and a sentence."""

    path: str
    line: int | None
    reason: str
    detail: str


class Record(msgspec.Struct, frozen=True):
    """One logged call as a format gives it: bodies still as JSON text, everything around them sorted out.

    body: the request body as UTF-8 JSON text, None where the log has none.
    body_offset: where `body` starts in the (uncompressed) file, when it stands there byte for byte; else None.
    as_sent: False when the log re-keyed or re-parsed the body, so that its bytes are not those of the wire.
    response: the response as JSON text; events: stream events as JSON texts, in order.
    meta: what logs keep outside the body (endpoint, region, workspace, api_key_fp, session, anthropic_beta, ...).
    Times are seconds since 1970 UTC. repeated: the beginning that the body is known to share with the earlier record
    whose `stem` it is, the very same object; a hint for speed only, empty where nothing is known.
    """

    source: Source
    body: bytes | None
    body_offset: int | None = None
    as_sent: bool = True
    response: bytes | None = None
    events: tuple[bytes, ...] = ()
    meta: Mapping[str, Json] = msgspec.field(default_factory=dict)
    url: str | None = None
    status: int | None = None
    error: str | None = None
    started_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    request_id: str | None = None
    repeated: bytes = b""
    stem: bytes = b""


# ---- what it means ---------------------------------------------------------------------------------------------


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call, disjoint: input = cache read + cache write + uncached input.

    write_split: False when the 5m/1h split of the writes was not reported and comes from the request's marks.
    writes_reported: False when the provider reports no write figure at all (writing costs nothing there).
    reads_reported: False when it does not say what was read, so that the read counts as 0 without being known.
    """

    input_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    uncached_input_tokens: int = 0
    output_tokens: int = 0
    write_split: bool = True
    writes_reported: bool = True
    reads_reported: bool = True

    def plus(self, other: Usage, sign: int = 1) -> Usage:
        """The sum of two usages, or their difference with sign -1."""
        return Usage(
            input_tokens=self.input_tokens + sign * other.input_tokens,
            cache_read_tokens=self.cache_read_tokens + sign * other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + sign * other.cache_write_tokens,
            cache_write_5m_tokens=self.cache_write_5m_tokens + sign * other.cache_write_5m_tokens,
            cache_write_1h_tokens=self.cache_write_1h_tokens + sign * other.cache_write_1h_tokens,
            uncached_input_tokens=self.uncached_input_tokens + sign * other.uncached_input_tokens,
            output_tokens=self.output_tokens + sign * other.output_tokens,
            write_split=self.write_split and other.write_split,
            writes_reported=self.writes_reported,
            reads_reported=self.reads_reported,
        )


class Transformation(msgspec.Struct, frozen=True):
    """What the provider did to a block of the input before the model saw it: its kind, the block, and why."""

    type: str
    path: str
    reason: str


class Reply(msgspec.Struct, frozen=True):
    """What a response says: usage, model and ids as served, the tier billed, or the error.

    usage: everything billed. Where one call ran its prompt several times (server tools), `first` is what its own
    prompt read and wrote, and `last` what it left behind; None where they are the usage itself. others: calls billed
    along with it, by model: advisor answers and compactions; they are part of `usage`. rounds: how often the provider
    ran its own tools within the call, None where that is not logged. odd: counters that cannot be true, read as 0.
    credit: what became of a fallback credit, `redeemed` or why not. changed: blocks of the input that the provider
    changed. charged_usd: the dollars that the provider itself says the call cost.
    """

    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    error: str | None = None
    diagnosis: Mapping[str, Json] | None = None
    first: Usage | None = None
    last: Usage | None = None
    others: tuple[tuple[str, Usage], ...] = ()
    rounds: int | None = None
    odd: tuple[str, ...] = ()
    credit: str | None = None
    changed: tuple[Transformation, ...] = ()
    charged_usd: float | None = None


class Block(msgspec.Struct, frozen=True):
    """One tool, system entry or content block: a digest and the bytes of its compact JSON.

    digest: 16 bytes, blind to `cache_control` and to key order outside free-form JSON.
    name: the tool's name, else empty.
    """

    kind: str
    digest: bytes
    size: int
    name: str = ""


class Mark(msgspec.Struct, frozen=True):
    """A cache mark on one block of a section or message: which block, and the lifetime asked for in seconds."""

    block: int
    ttl_s: int


class Section(msgspec.Struct, frozen=True):
    """The tools or the system prompt of a step; size is the bytes of its elements joined by commas."""

    blocks: tuple[Block, ...] = ()
    digest: bytes = b""
    size: int = 0
    marks: tuple[Mark, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """One element of the messages section, without its cache marks."""

    role: str
    digest: bytes
    size: int
    blocks: tuple[Block, ...]
    ids: tuple[str, ...] = ()


class Node(msgspec.Struct, eq=False):
    """A history of messages as one node of a tree that runs share: this message after the parent's.

    size: bytes of the whole history, joined by commas. first_user: depth of the first user message on the way
    here, 0 where there is none yet. first: the history of the first message alone.
    """

    parent: Node | None
    message: Message | None
    depth: int = 0
    size: int = 0
    first_user: int = 0
    first: Node | None = None
    children: dict[bytes, Node] = msgspec.field(default_factory=dict)
    visited: bool = False
    stamp: int = 0

    def child(self, message: Message) -> Node:
        """The history that is one message longer, made where it is new."""
        found = self.children.get(message.digest)
        if found is None:
            found = Node(
                parent=self,
                message=message,
                depth=self.depth + 1,
                size=self.size + message.size + (1 if self.depth else 0),
                first_user=self.first_user or (self.depth + 1 if message.role == "user" else 0),
            )
            found.first = self.first or found
            self.children[message.digest] = found
        return found

    def messages(self, start: int = 0) -> list[Message]:
        """The messages from index `start` to here, in order."""
        found: list[Message] = []
        node: Node | None = self
        while node is not None and node.message is not None and node.depth > start:
            found.append(node.message)
            node = node.parent
        found.reverse()
        return found

    def ancestor(self, depth: int) -> Node:
        """The history of the first `depth` messages."""
        node = self
        while node.depth > depth:
            assert node.parent is not None
            node = node.parent
        return node


class Breakpoint(msgspec.Struct, frozen=True):
    """The end of a block marked for caching: 0-based element of a section, block inside it, lifetime in seconds."""

    section: SectionName
    element: int
    block: int
    ttl_s: int


class BodyRef(msgspec.Struct, frozen=True):
    """Where a request body can be read again: a numbered store, first byte, length in bytes."""

    store: int
    offset: int
    length: int


class Parameters(msgspec.Struct, frozen=True):
    """The parameter groups of a step that decide whether a cache entry can be found, null counting as absent.

    The keys are texts that are equal wherever the group means the same; with a workspace the API key's
    fingerprint is no part of scope_key.
    """

    scope: Mapping[str, Json] = msgspec.field(default_factory=dict)
    message_level: Mapping[str, Json] = msgspec.field(default_factory=dict)
    routing: Mapping[str, Json] = msgspec.field(default_factory=dict)
    scope_key: str = "{}"
    level_key: str = "{}"
    routing_key: str = "{}"


class Step(msgspec.Struct):
    """One request with its response: digests and references, never the texts.

    api: the body's shape, e.g. `anthropic.messages`; steps of different shapes are never compared.
    bare_system: the system section without Claude Code's attribution line, where it has one; drop_attribution
    says that it is the one that counts. leading: logged messages that belong to the system section.
    previous_response: the response, or stored conversation, that this request goes on from, so that the provider holds
    what stands before;
    goes_on_from: its step; chained: how many messages of the history were taken over from there, -1 where it is not in
    the trace; carried: how many entries of the system section were, its last ones.
    asked_ttl_s: the lifetime that the request asks for as a whole; explicit_marks: only its own breakpoints count.
    members: where each member of the body stands in it, None where its text was printed anew. user: whose the body
    says it is. stored: the key of the stored content that the prompt begins with (Gemini).
    """

    number: int
    source: Source
    body: BodyRef | None
    as_sent: bool
    provider: str
    api: str
    model: str
    tools: Section
    system: Section
    history: Node
    params: Parameters
    breakpoints: tuple[Breakpoint, ...]
    reply: Reply
    meta: Mapping[str, Json]
    bare_system: Section | None = None
    attribution: bytes = b""
    drop_attribution: bool = False
    leading: int = 0
    previous_response: str | None = None
    goes_on_from: Step | None = None
    chained: int = 0
    carried: int = 0
    asked_ttl_s: float | None = None
    explicit_marks: bool = False
    members: Mapping[str, tuple[int, int]] | None = None
    sessions: tuple[str, ...] = ()
    user: str = ""
    stored: str = ""
    request_id: str | None = None
    started_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    run_id: str = ""
    compare_to: int | None = None

    def __repr__(self) -> str:
        """Short: a step may hold the one that it goes on from, and that one another."""
        line = f":{self.source.line}" if self.source.line is not None else ""
        return f"Step({self.number}, {self.source.path}{line}, {self.model})"

    @property
    def usage(self) -> Usage | None:
        """The reported tokens, None where the log has none."""
        return self.reply.usage

    @property
    def prompt_usage(self) -> Usage | None:
        """The tokens of the prompt as it was sent: of the first run, where the call ran it several times."""
        return self.reply.first or self.reply.usage

    @property
    def left_usage(self) -> Usage | None:
        """The tokens of the last run of the prompt, which is what the call leaves in the cache."""
        return self.reply.last or self.reply.usage

    @property
    def sent_system(self) -> Section:
        """The system section as far as it is part of the prefix."""
        return self.bare_system if self.drop_attribution and self.bare_system is not None else self.system

    @property
    def prompt_bytes(self) -> int:
        """Bytes of all sections."""
        return self.tools.size + self.sent_system.size + self.history.size

    @property
    def state(self) -> tuple[str, bytes, bytes, str]:
        """What must be equal for a cache entry to be found, but the messages: scope, tools, system, parameters."""
        params = self.params
        return (self.api + params.scope_key, self.tools.digest, self.sent_system.digest, params.level_key)

    @property
    def has_body(self) -> bool:
        """Whether the log holds the request body."""
        return self.body is not None


# ---- what was found --------------------------------------------------------------------------------------------


class Divergence(msgspec.Struct, frozen=True):
    """The first byte at which a section or parameter stops repeating the compared step.

    byte_offset: in the section's own bytes; prefix_offset: with the sections before it; raw_before/raw_after: in
    the request bodies as logged. change: reordered, added, removed, edited, reserialized, ...
    """

    section: SectionName
    json_path: str | None
    byte_offset: int | None
    prefix_offset: int | None = None
    raw_before: int | None = None
    raw_after: int | None = None
    tool: str | None = None
    server: str | None = None
    group: str | None = None
    change: str = "edited"
    before: str = ""
    after: str = ""
    invalidated_tokens: int = 0


class Cost(msgspec.Struct, frozen=True):
    """US dollars of one call, by what was paid for."""

    total_usd: float
    uncached_input_usd: float
    cache_read_usd: float
    cache_write_usd: float
    output_usd: float

    def __add__(self, other: Cost) -> Cost:
        """The cost of two calls together."""
        return Cost(
            self.total_usd + other.total_usd,
            self.uncached_input_usd + other.uncached_input_usd,
            self.cache_read_usd + other.cache_read_usd,
            self.cache_write_usd + other.cache_write_usd,
            self.output_usd + other.output_usd,
        )


class Rates(msgspec.Struct, frozen=True):
    """US dollars per token that one call is billed at; write rates by lifetime.

    source: where the figures come from. Kinds that a model does not have are billed as uncached input.
    """

    uncached_input: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    output: float
    source: str = ""

    def cost(self, usage: Usage) -> Cost:
        """What the call cost. A write that is neither 5m nor 1h is billed at the 5m rate."""
        rest = usage.cache_write_tokens - usage.cache_write_1h_tokens
        uncached = usage.uncached_input_tokens * self.uncached_input
        read = usage.cache_read_tokens * self.cache_read
        write = rest * self.cache_write_5m + usage.cache_write_1h_tokens * self.cache_write_1h
        output = usage.output_tokens * self.output
        return Cost(
            total_usd=uncached + read + write + output,
            uncached_input_usd=uncached,
            cache_read_usd=read,
            cache_write_usd=write,
            output_usd=output,
        )


class Verdict(msgspec.Struct, frozen=True):
    """Why a step read what it read: cause, places, and the tokens billed again.

    rebilled_tokens: None without usage or compared step. servers: for a reordered tool list, the MCP servers whose
    own sequence changed, `merge` where only their merge did. detail: which kind of the cause, where it has kinds.
    """

    code: str
    cause: str
    section: SectionName
    group: int
    contributing: tuple[str, ...] = ()
    confidence: Confidence | None = None
    explanation: str = ""
    remedy: str = ""
    avoidable: bool = False
    movers: tuple[Divergence, ...] = ()
    rebilled_tokens: int | None = None
    uncached_repeat_tokens: int | None = None
    servers: tuple[str, ...] = ()
    detail: str | None = None

    @property
    def divergence(self) -> Divergence | None:
        """The first byte that moved."""
        return self.movers[0] if self.movers else None


class Ledger(msgspec.Struct, frozen=True):
    """The input of one call, every token or dollar in exactly one account."""

    cache_read: float
    new: float
    rebilled: float
    outside_breakpoints: float


class Outcome(msgspec.Struct, frozen=True):
    """The split of one step's input tokens as the cache rules predict it.

    entry: the step that left what is read, None where nothing is. estimated: the total was not reported, so that
    it rests on bytes alone. runs: how often the call ran its prompt (server tools).
    """

    read: int
    write_5m: int
    write_1h: int
    uncached: int
    entry: int | None = None
    estimated: bool = False
    runs: int = 1

    @property
    def write(self) -> int:
        """Tokens stored, whatever their lifetime."""
        return self.write_5m + self.write_1h

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.read + self.write + self.uncached

    def usage(self, output_tokens: int) -> Usage:
        """The same as a usage, to be priced."""
        return Usage(
            input_tokens=self.total,
            cache_read_tokens=self.read,
            cache_write_tokens=self.write,
            cache_write_5m_tokens=self.write_5m,
            cache_write_1h_tokens=self.write_1h,
            uncached_input_tokens=self.uncached,
            output_tokens=output_tokens,
        )


class StepResult(msgspec.Struct, frozen=True):
    """One step with everything that was found about it.

    rebilled_usd, cacheable_usd: what re-billed and never-cached repeated tokens cost above the read rate, None where
    the model has no price. simulated: what the cache rules predict, beside what was reported.
    """

    step: Step
    verdict: Verdict
    tokens: Ledger | None = None
    cost: Cost | None = None
    paid: Ledger | None = None
    rebilled_usd: float | None = None
    cacheable_usd: float | None = None
    simulated: Outcome | None = None


class Accusation(msgspec.Struct, frozen=True):
    """What a probe of an MCP server says to what its tools did in a trace.

    probe: what the probed server is called; check: the check that speaks; result: its result there, `pass` where the
    server held still; said: all of it as a sentence. certain: whether it is surely the same server.
    """

    probe: str
    check: str
    result: str
    said: str
    certain: bool


class ServerPart(msgspec.Struct, frozen=True):
    """The part that one MCP server's tools had in a finding. server: None for tools of no server.

    changes: what they did, of `order`, `set`, `definitions` and `key_order`; empty where they stood still. steps: at
    which of the finding's steps. Tokens and dollars are those of these steps, whoever else moved there.
    """

    server: str | None
    tools: int
    changes: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    rebilled_tokens: int = 0
    rebilled_usd: float | None = None
    accusations: tuple[Accusation, ...] = ()


class ProbeMatch(msgspec.Struct, frozen=True):
    """A probe given beside a trace: whose it is there. server: the name in the trace, None where it is not found.

    recorded: whether it is a recording of a client and no probe. how: `names`, `name_and_sizes`, `name`, `sizes`,
    `ambiguous` or `none`; certain: whether it is surely the same.
    """

    probe: str
    source: str
    probed: str
    recorded: bool
    tools: int
    lists: int
    server: str | None
    how: str
    certain: bool
    note: str


class Finding(msgspec.Struct, frozen=True):
    """One thing to mend: the steps it hit and what they cost. servers: the parts of MCP servers, where tools moved.

    estimated_tokens: what its steps without usage may have been billed again, by the cache rules and from bytes alone;
    None where all report usage. It is in no other figure.
    """

    code: str
    cause: str
    title: str
    remedy: str
    confidence: Confidence | None
    steps: tuple[int, ...]
    section: SectionName
    json_path: str | None
    evidence: str
    avoidable: bool
    rebilled_tokens: int
    rebilled_usd: float | None
    repeat_tokens: int = 0
    cacheable_usd: float | None = None
    example: int = 0
    fix_saves_usd: float | None = None
    servers: tuple[ServerPart, ...] = ()
    estimated_tokens: int | None = None
