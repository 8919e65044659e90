"""For each check of a probe: what is wrong in a few words, what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebilled.mcp.artifact import Leg
from rebilled.reports.amount import whole

_KINDS = {
    "per_connection": "each connection keeps its own",
    "side_effect": "it depends on what was asked before on the connection",
    "flapping": "it comes and goes, as with chance, an unordered map, or replicas that do not agree",
    "changed_once": "it changed once, for all connections, as after a deploy",
    "under_load": "it moves only while several lists are asked for at once",
    "steady": "it stood still",
}


class Advice(msgspec.Struct, frozen=True):
    """Texts for one check. seen: from the evidence and the leg to a sentence."""

    title: str
    seen: Callable[[Mapping[str, Any], Leg], str]
    fix: str


def _hints(word: str) -> Callable[[Mapping[str, Any], Leg], str]:
    def seen(evidence: Mapping[str, Any], leg: Leg) -> str:
        del leg
        methods = sorted({place["method"] for place in evidence["at"]})
        found = sorted(
            {str(place[key]) for place in evidence["at"] for key in ("type", "scope", "result_type") if key in place}
        )
        values = [str(place["value"]) for place in evidence["at"] if place.get("value") is not None]
        told = f"{word} is {' or '.join(found)}" + (f" ({', '.join(sorted(set(values))[:3])})" if values else "")
        return f"{told} on {evidence['bad']} of {whole(evidence['results'], 'result')} ({', '.join(methods)})."

    return seen


def _order(evidence: Mapping[str, Any], leg: Leg) -> str:
    del leg
    return (
        f"{evidence['tools']} tools in {evidence['distinct']} orders, {evidence['other_order']} of"
        f" {whole(evidence['lists'], 'list')} unlike the usual one, from place {evidence['first_divergence'] + 1} on;"
        f" {_KINDS[evidence['kind']]}."
    )


def _set(evidence: Mapping[str, Any], leg: Leg) -> str:
    del leg
    if evidence["methods"]:
        return f"The set of {' and '.join(evidence['methods'])} varies; {_KINDS[evidence['kind']]}."
    least, most = evidence["tools_min"], evidence["tools_max"]
    counts = f"{least} tools" if least == most else f"{least} to {most} tools"
    return (
        f"{counts} in {evidence['distinct']} different sets over {whole(evidence['lists'], 'list')};"
        f" {_KINDS[evidence['kind']]}."
    )


def _definitions(evidence: Mapping[str, Any], leg: Leg) -> str:
    where = ", ".join(evidence["pointers"][:3])
    like = " or ".join(evidence["looks_like"]) or "value"
    return (
        f"{evidence['tools_changed']} of {whole(len(leg.tools), 'tool')} changed at {where} (looks like: {like});"
        f" {_KINDS[evidence['kind']]}."
    )


def _serialisation(evidence: Mapping[str, Any], leg: Leg) -> str:
    del leg
    if evidence["tools_rekeyed"]:
        where = ", ".join(evidence["pointers"][:3])
        return f"The keys of {whole(evidence['tools_rekeyed'], 'tool')} come in another order, at {where}."
    return "The same definitions come with other escapes or white space. A client that parses and prints JSON hides it."


def _faults(evidence: Mapping[str, Any], leg: Leg) -> str:
    rows = [_fault(row) for row in evidence["faults"][:3]]
    more = f" and {evidence['bad'] - 3} more" if evidence["bad"] > 3 else ""
    return f"{evidence['bad']} of {whole(len(leg.tools), 'tool')}: {'; '.join(rows)}{more}."


def _fault(row: Mapping[str, Any]) -> str:
    place = f"tool {row['tool'] + 1} of the list"
    if "classes" in row:
        length = f", {row['length']} signs" if "length" in row else ""
        return f"{place} ({', '.join(row['classes'])}{length})"
    if "rules" in row:
        return f"{place} breaks rule {' and '.join(map(str, row['rules']))}"
    if "keyword" in row:
        return f"{place} ({row['keyword']}{', ' + row['dialect'] if 'dialect' in row else ''})"
    return place


def _outcome(evidence: Mapping[str, Any], leg: Leg) -> str:
    del leg
    codes = [f"error {evidence['code']}"] if evidence.get("code") is not None else []
    codes += [f"HTTP {evidence['status']}"] if evidence.get("status") is not None else []
    told = ", ".join([evidence.get("outcome", "other").replace("_", " "), *codes])
    return f"The answer: {told}."


def _variants(evidence: Mapping[str, Any], leg: Leg) -> str:
    del leg
    return "Tools by declared capabilities: " + ", ".join(f"{name} {n}" for name, n in evidence["tools"].items()) + "."


_SORT = "Sort the tools by name just before the result is built, in the server; until then, sort them in the client."
_SAME_SET = (
    "List the same tools to everybody who has the same credentials, and check rights when a tool is called; keep no"
    " state of the connection."
)

ADVICE: dict[str, Advice] = {
    "hints.ttl_present": Advice(
        "Results without a lifetime",
        _hints("ttlMs"),
        "Put ttlMs at the root of every complete result, such as 300000 for a list that changes with deploys. Clients"
        " take a missing one for 0, and strict ones drop the whole list.",
    ),
    "hints.ttl_valid": Advice(
        "A lifetime that is no whole number from 0 on",
        _hints("ttlMs"),
        "Send ttlMs as an integer of milliseconds, 0 or more.",
    ),
    "hints.scope_valid": Advice(
        "Results without a valid scope",
        _hints("cacheScope"),
        'Put cacheScope at the root of every complete result: "private" where the list depends on who asks, else'
        ' "public".',
    ),
    "hints.scope_same_across_pages": Advice(
        "Pages of one list with different scopes",
        lambda evidence, _: (
            f"{evidence['mixed']} of {whole(evidence['lists'], 'list')}: {', '.join(evidence['scopes'])}."
        ),
        "Send the same cacheScope on every page of a list.",
    ),
    "hints.ttl_useful": Advice(
        "A lifetime of 0",
        lambda *_: "ttlMs 0 is allowed, and means: fetch the list again each time. SDKs send it by default.",
        "Set a lifetime, such as 300000, where the server is configured; then clients need not fetch the list again.",
    ),
    "hints.placement": Advice(
        "Hints in a place where nobody looks",
        lambda evidence, _: f"Hints stand only in: {', '.join(evidence['only_in'])}.",
        "Move ttlMs and cacheScope to the root of the result.",
    ),
    "hints.stable": Advice(
        "Hints that change from list to list",
        lambda evidence, _: f"They change on {', '.join(evidence['methods'])}; ttlMs seen: {evidence['ttl_ms']}.",
        "Nothing has to be done where the lifetime counts down; else set it to one value.",
    ),
    "result.type_complete": Advice(
        "Results without a known type",
        _hints("resultType"),
        'Send resultType "complete"; clients of 2026-07-28 must not use a result of an unknown type.',
    ),
    "list.set_per_connection": Advice("Not every connection is shown the same tools", _set, _SAME_SET),
    "list.set_side_effect": Advice("Requests change which tools are listed", _set, _SAME_SET),
    "list.order": Advice("The tools come in another order", _order, _SORT),
    "list.definitions_stable": Advice(
        "Definitions that change",
        _definitions,
        "Take what changes out of names, descriptions and schemas: clocks, counters, ids, states. Give it in a tool's"
        " result.",
    ),
    "list.serialisation_stable": Advice(
        "The same definitions in other bytes",
        _serialisation,
        "Build each schema in one fixed key order, or dump it once and keep the text.",
    ),
    "list.capability_variance": Advice(
        "Other clients see other tools",
        _variants,
        "List one set, and answer a call that needs what the client cannot do with an error.",
    ),
    "page.cursor_loop": Advice(
        "The pages never end",
        lambda evidence, _: f"A cursor came back after {whole(evidence['pages'], 'page')}.",
        "Leave nextCursor out on the last page.",
    ),
    "page.limit": Advice(
        "The list is longer than is read",
        lambda evidence, _: f"It had not ended after {whole(evidence['pages'], 'page')}.",
        "Leave nextCursor out on the last page; offer fewer tools.",
    ),
    "tool.names": Advice(
        "Names that clients may refuse", _faults, "Name tools with 1 to 128 of A-Z a-z 0-9 _ . and -."
    ),
    "tool.unique": Advice("Names that come twice", _faults, "Give each tool its own name, such as with a prefix."),
    "tool.input_schema": Advice(
        "Input schemas that are none",
        _faults,
        'Give each tool an inputSchema with "type": "object"; without arguments, also "additionalProperties": false.',
    ),
    "tool.schema_valid": Advice(
        "Input schemas that are not valid", _faults, "Mend them for the dialect that they declare."
    ),
    "tool.output_schema": Advice(
        "Output schemas that are not valid", _faults, "Mend them for the dialect that they declare."
    ),
    "tool.x_mcp_header": Advice(
        "Header annotations that break a rule",
        _faults,
        "Mend or drop x-mcp-header; clients over HTTP must leave out these tools, so a model sees a shorter list.",
    ),
    "version.error_shape": Advice(
        "The wrong answer to an unknown revision",
        _outcome,
        "Answer -32022 with data.supported and data.requested, over HTTP with status 400.",
    ),
    "discover.present": Advice(
        "server/discover is not answered",
        _outcome,
        "Answer it with supportedVersions and capabilities; it is required.",
    ),
    "scope.public_on_auth": Advice(
        "A list behind a login that is offered to every cache",
        lambda *_: 'cacheScope is "public", and without credentials nothing is listed.',
        'Send "private" where the list depends on who asks; "public" may reach other users.',
    ),
    "change.listen": Advice(
        "Changes are promised, but not told",
        _outcome,
        "Acknowledge subscriptions/listen, or declare no listChanged.",
    ),
}
"""By the id of the check."""

VERDICTS = {
    "unreachable_timeout": "It does not answer in time. Run the command by hand, or give it more with --timeout.",
    "unreachable_dns": "The host name is not known. Check the URL.",
    "unreachable_connect": "Nobody listens there. Check host and port, and that the server runs.",
    "unreachable_tls": "The TLS handshake failed. Check the certificate, and http or https.",
    "auth_required": "It wants credentials: --header 'Authorization: Bearer ...'.",
    "forbidden_403": "It refuses these credentials, or all. Check what they may do.",
    "redirect_not_followed": "The address redirects. Give the final one.",
    "rate_limited_429": "It asks to be left alone for a while. Try again later, with --pause 2000.",
    "server_error_5xx": "It fails. Look into its log.",
    "not_mcp": "What it says is not MCP. Check that the command prints nothing else, or that the URL is the endpoint.",
    "server_ended": "It ended by itself. Run the command by hand to see why; give what it needs with --env NAME.",
    "connection_lost": "The connection broke. Look into its log.",
    "too_large": "An answer is larger than a client should take. Offer fewer tools, or pages.",
    "flood": "It writes without end. Run the command by hand to see what.",
    "too_deep": "A schema is nested deeper than a client should take.",
    "deadline": "It took too long altogether. Give it more with --deadline, or ask less with --revision.",
    "cursor_loop": "The pages of its list never end.",
    "page_limit": "Its list has more pages than are read.",
    "item_limit": "Its list has more tools than are read.",
    "no_tool_list": "The result of tools/list holds no list.",
    "instrument_rejected": "It says that our request is wrong; that is not counted against it.",
    "version_unsupported": "It speaks a revision that is not known here.",
}
"""What to do where a server could not be measured; other classes hold a code that speaks for itself."""
