r"""A tool's definition is equal as JSON but has other bytes.

What happened
    The schema was generated again, and its keys came out in another order, or a number took another form (`1` and
    `1.0`). Go and Swift maps, reflection over fields, a proxy that parses and re-writes the body, or two replicas
    with two library versions do that.

Why it costs
    The provider hashes the prompt in the order in which the keys arrive. Anthropic names tool schemas that are
    serialised inconsistently among the reasons for a tools miss (cache diagnostics page, 2026-08-21). As tools come
    first, everything behind that key is written again.

How to recognise it
    A text diff shows a change, a comparison of the parsed JSON shows none. Sort the keys of both (`jq -S .tools
    a.json`): the difference is gone.

Example
    step 11  {"tools":[{"name":"search","input_schema":{"type":"object","required":["q"]}}]}
    step 12  {"tools":[{"name":"search","input_schema":{"required":["q"],"type":"object"}}]}
                                                         ^ $.tools[0].input_schema, byte 34 of tools

What to change
    Keep what you sent first, and send it again for as long as the meaning is the same:

        canonical = json.dumps(tool, sort_keys=True)
        tool = first_sent.setdefault(canonical, tool)

    If you own the generator, use an ordered structure or sort keys there. In Go, `encoding/json` sorts the keys of
    maps; hand-written encoders and `json.RawMessage` do not. In a proxy, pass the body through as bytes.

Known limits
    Key order is compared only inside free-form JSON (`input_schema`, `parameters`, `inputSchema`): outside of it
    the provider's own types fix the order. White space between JSON tokens and `\u` escapes never count, since
    parsing removes them; whether a server looks at them is not documented. A log that re-writes bodies, or loses
    key order, can hide this cause or invent it. If only the order of a `required` or `enum` LIST moved, that is a
    change of content (RB204), although the schema accepts the same values.
"""

from __future__ import annotations

from json import dumps

from rebilled.causes.cause import Cause
from rebilled.causes.telling import listed_tools
from rebilled.diff import same, sort_keys
from rebilled.evidence import Evidence
from rebilled.spans import dump_json


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    mine, theirs = evidence.before.step.tools, evidence.after.step.tools
    if mine.digest == theirs.digest or not evidence.in_range("tools"):
        return None
    before, after = listed_tools(evidence.before), listed_tools(evidence.after)
    old, new = dict(before), dict(after)
    if old.keys() != new.keys() or len(before) != len(after):
        return None
    changed = [name for name in new if not same(old[name], new[name])]
    if not changed or any(dump_json(sort_keys(old[name])) != dump_json(sort_keys(new[name])) for name in changed):
        return None
    keys_only = all(dumps(old[name], sort_keys=True) == dumps(new[name], sort_keys=True) for name in changed)
    how = "its keys stand in another order" if keys_only else "is written in another way"
    rest = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"The definition of {changed[0]}{rest} means the same, but {how}."


CAUSE = Cause(
    code="RB203",
    name="tool_schema_reserialized",
    title="A tool's schema was written differently",
    section="tools",
    group=5,
    avoidable=True,
    explanation=(
        "A tool means the same as before, but its JSON has other bytes: keys in another order, or a number written "
        "otherwise. Caches compare what is written, so all behind it is billed again."
    ),
    remedy=(
        "Serialise each tool once per run, and send those same bytes in every step; sort the keys if you must build "
        "it anew."
    ),
    doc=__doc__ or "",
    applies=applies,
)
