"""For each lint rule definitions that it must find something in, and more in which it must stay silent."""

from __future__ import annotations

from typing import Any

from rebilled.mcp.definition import definitions_of
from rebilled.mcp.lint import different
from rebilled.mcp.lint_rule import Subject, ToolList

Tool = dict[str, Any]
Lists = list[list[Any]]


def tool(name: str = "find_notes", description: str = "Find notes.", /, **schema: Any) -> Tool:
    """An MCP tool; keywords are members of its schema of the arguments."""
    given = schema or {"properties": {"word": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": {"type": "object", **given}}


def prop(**schema: Any) -> Tool:
    """A tool with one property `x`."""
    return tool(properties={"x": schema})


def untyped(names: str) -> dict[str, Any]:
    """A property without a type for each letter."""
    return {name: {} for name in names}


def said(text: str) -> Lists:
    """One list of one tool with this description."""
    return [[tool("find_notes", text)]]


def subject(lists: Lists, **more: Any) -> Subject:
    """What the rules look at, the lists in a row."""
    found = tuple(
        ToolList(tuple(one for item in items for one in definitions_of(item)), f"list {place}")
        for place, items in enumerate(lists, 1)
    )
    pairs = tuple((at - 1, at) for at in range(1, len(found)))
    return Subject(found, different(found), pairs, **{"tokens_per_byte": 0.25, **more})


def annotated(header: Any = "X-Word", **schema: Any) -> Lists:
    """One list of one tool whose property `x` is mirrored as a header."""
    return [[prop(**{"type": "string", "x-mcp-header": header, **schema})]]


LONG = "Looks for notes that hold a word, newest first, and says where each of them stands in the folder. "
GOOD: Lists = [[tool(), tool("add_note", "Add a note."), tool("drop_note", "Drop a note.")]]
A, B, C = tool("a_note"), tool("b_note"), tool("c_note")
REKEYED = {"description": "Find notes.", "name": "a_note", "inputSchema": A["inputSchema"]}

CASES: dict[str, tuple[list[Lists], list[Lists]]] = {
    "tool.object": ([[[tool(), None]], [["find"]]], [GOOD, [[]], [[{}]]]),
    "name.missing": (
        [[[{"description": "x", "inputSchema": {"type": "object"}}]], [[{**tool(), "name": 7}]]],
        [GOOD, [[{"type": "web_search"}]], [[{"functionDeclarations": [{"name": "f"}]}]]],
    ),
    "name.length": ([[[tool("n" * 129)]]], [GOOD, [[tool("n" * 128)]], [[tool("n")]]]),
    "name.characters": (
        [[[tool("find notes")]], [[tool("")]], [[tool("café")]], [[tool("a,b")]]],
        [GOOD, [[tool("a.b-c_D9")]], [[tool("mcp__notes__find")]], [[tool("X")]], [[tool("n" * 200)]]],
    ),
    "name.twice": ([[[tool(), tool()]]], [GOOD, [[tool("a"), tool("A")]], [[tool()], [tool()]]]),
    "name.alike": (
        [[[tool("get_note"), tool("getNote")]], [[tool("get-note"), tool("get.note")]]],
        [GOOD, [[tool("get_note"), tool("get_notes")]], [[tool("get_note"), tool("get_note")]]],
    ),
    "name.volatile": (
        [[[tool("find_3f2504e0-4f89-11d3-9a0c-0305e82c3301")]], [[tool("notes_2026-11-30")]]],
        [GOOD, [[tool("base64_encode")]], [[tool("list_s3_buckets")]], [[tool("v2_find")]]],
    ),
    "schema.missing": (
        [[[{"name": "f"}]], [[{**tool(), "inputSchema": None}]], [[{**tool(), "inputSchema": []}]]],
        [
            GOOD,
            [[{"type": "function", "function": {"name": "f"}}]],
            [[{"type": "web_search_20250305", "name": "web_search"}]],
            [[{"functionDeclarations": [{"name": "f"}]}]],
        ],
    ),
    "schema.root": (
        [[[{**tool(), "inputSchema": {"properties": {}}}]], [[{**tool(), "inputSchema": {"type": "array"}}]]],
        [GOOD, [[{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}]], [[{"name": "f"}]]],
    ),
    "schema.valid": (
        [[[prop(type="strin")]], [[tool(required="word")]], [[prop(minLength=-1)]]],
        [
            GOOD,
            [[prop(type=["string", "null"])]],
            [[tool(**{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}})]],
            [[tool(required=["not_a_property"])]],
        ],
    ),
    "schema.output": (
        [[[{**tool(), "outputSchema": {"type": "thing"}}]]],
        [GOOD, [[{**tool(), "outputSchema": {"type": "array"}}]], [[{**tool(), "outputSchema": True}]]],
    ),
    "schema.dialect": (
        [
            [[tool(**{"$schema": "http://json-schema.org/draft-07/schema#"})]],
            [[tool(**{"$schema": "https://example.com/own"})]],
        ],
        [GOOD, [[tool(**{"$schema": "https://json-schema.org/draft/2020-12/schema"})]], [[{"name": "f"}]]],
    ),
    "schema.remote_ref": (
        [[[prop(**{"$ref": "https://example.com/word.json"})]], [[prop(**{"$ref": "word.json#/a"})]]],
        [
            GOOD,
            [[tool(**{"$defs": {"w": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/w"}}})]],
            [[tool(**{"$defs": {"w": {"$id": "https://e.com/w"}}, "properties": {"x": {"$ref": "https://e.com/w"}}})]],
        ],
    ),
    "schema.broken_ref": (
        [[[prop(**{"$ref": "#/$defs/w"})]], [[prop(**{"$ref": "#word"})]]],
        [
            GOOD,
            [[tool(**{"$defs": {"w": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/w"}}})]],
            [[tool(**{"$defs": {"w": {"$anchor": "word"}}, "properties": {"x": {"$ref": "#word"}}})]],
            [[prop(**{"$ref": "#"})]],
            [[tool(**{"$defs": {"a/b": {}}, "properties": {"x": {"$ref": "#/$defs/a~1b"}}})]],
        ],
    ),
    "schema.large": (
        [[[tool(properties={f"p{n}": {"type": "string"} for n in range(201)})]]],
        [GOOD, [[tool(properties={f"p{n}": {"type": "string"} for n in range(199)})]]],
    ),
    "schema.no_arguments": (
        [[[{**tool(), "inputSchema": {"type": "object"}}]], [[tool(properties={})]]],
        [GOOD, [[tool(additionalProperties=False)]], [[tool(patternProperties={"^x": {}})]], [[{"name": "f"}]]],
    ),
    "header.value": ([annotated(""), annotated(7)], [annotated(), GOOD, annotated("X Word"), annotated("X\n")]),
    "header.token": ([annotated("X Word"), annotated("Wört")], [annotated(), annotated("a!#$%&'*+-.^_`|~9"), GOOD]),
    "header.control": (
        [annotated("X\n"), annotated("X\r\nEvil: 1")],
        [annotated(), annotated("X Word"), annotated("")],
    ),
    "header.unique": (
        [[[tool(properties={name: {"type": "string", "x-mcp-header": name.upper()} for name in ("ab", "AB")})]]],
        [
            annotated(),
            [[prop(type="string", **{"x-mcp-header": "X"}), tool("b", properties={"y": {"x-mcp-header": "X"}})]],
            GOOD,
        ],
    ),
    "header.type": (
        [annotated(type="number"), annotated(type=["string", "null"]), [[prop(**{"x-mcp-header": "X"})]]],
        [annotated(), annotated(type="integer"), annotated(type="boolean"), GOOD],
    ),
    "header.place": (
        [
            [[tool(**{"x-mcp-header": "X"})]],
            [[prop(type="array", items={"type": "string", "x-mcp-header": "X"})]],
            [[tool(anyOf=[{"properties": {"y": {"type": "string", "x-mcp-header": "X"}}}])]],
            [[tool(**{"$defs": {"w": {"type": "string", "x-mcp-header": "X"}}})]],
        ],
        [
            annotated(),
            [[prop(type="object", properties={"y": {"type": "string", "x-mcp-header": "X"}})]],
            [[tool(properties={"x-mcp-header": {"type": "string"}})]],
            [[prop(type="string", enum=["x-mcp-header"])]],
            [[prop(type="object", default={"x-mcp-header": "X"})]],
        ],
    ),
    "header.range": (
        [annotated(type="integer", maximum=2**53), annotated(type="integer", enum=[1, -(2**60)])],
        [annotated(type="integer"), annotated(type="integer", maximum=2**53 - 1), annotated(maximum=2**60)],
    ),
    "header.secret": (
        [annotated("X-Api-Key"), [[tool(properties={"password": {"type": "string", "x-mcp-header": "X"}})]]],
        [annotated(), annotated("X-Region"), [[tool(properties={"password": {"type": "string"}})]]],
    ),
    "text.volatile": (
        [
            said("Find notes. The current month is June 2026, use it."),
            said("Find notes. Generated at 2026-11-30T09:15:00Z."),
            said("Session 3f2504e0-4f89-11d3-9a0c-0305e82c3301."),
            said("See https://docs.example.com/help?session=8f3a91c2 for more."),
            [[prop(type="string", description="Today is 2026-11-30, so use that year.")]],
        ],
        [
            GOOD,
            said("A day, e.g. 2026-11-30, or a time such as 09:15."),
            said("Times out after 30 seconds; asks again every 5 minutes."),
            said("See https://docs.example.com/help for more."),
            said("Reads files such as /etc/hosts or src/main.py."),
            said("Follows RFC 3339 (for example 2026-01-01T00:00:00Z)."),
            said("A commit hash like 4f2a9c81d0b37e65."),
            [[prop(type="string", default="2026-11-30T09:15:00Z")]],
        ],
    ),
    "text.counter": (
        [said("Find notes. There are 42 notes in 3 folders."), said("Answers mail; 17 messages unread.")],
        [
            GOOD,
            said("Gives at most 50 results."),
            said("Files of more than 3,000 lines are left out."),
            said("Wait 30 seconds now; sleep 30\n  done"),
            said("Contains 100 characters of the text."),
        ],
    ),
    "text.local": (
        [said("Works below /home/mira/projects/shop."), said("Talks to http://localhost:3000/api.")],
        [
            GOOD,
            said("A path such as /home/user/notes.txt."),
            said("Starts at http://localhost:<port>."),
            said("Reads /etc/hosts and /var/log."),
        ],
    ),
    "text.credential": (
        [said("Send the header Bearer abcdefgh12345678."), [[prop(type="string", default="sk-abcdefghijkl1234")]]],
        [GOOD, said("Send a bearer token."), said("Uses an API key from the environment.")],
    ),
    "size.tool": ([said(LONG * 45)], [GOOD, said(LONG * 30), said("")]),
    "size.list": (
        [[[tool(f"t{n}", LONG * 30) for n in range(30)]]],
        [GOOD, [[tool(f"t{n}", LONG * 30) for n in range(9)]], [[]]],
    ),
    "size.enum": (
        [[[prop(enum=[f"value {n}" for n in range(51)])]]],
        [GOOD, [[prop(enum=[f"value {n}" for n in range(50)])]], [[prop(const="enum")]]],
    ),
    "alike.tools": (
        [[[tool("find_notes", LONG), tool("search_notes", LONG.replace("Looks", "Searches"))]]],
        [
            GOOD,
            [
                [
                    tool("find_notes", LONG),
                    tool("drop_notes", "Drops all notes that hold a word, and does not ask twice."),
                ]
            ],
            [[tool("find_notes", "Find."), tool("find_all", "Find.")]],
            [
                [
                    tool("find_notes", LONG),
                    tool("search_notes", LONG.replace("notes", "mails and files"), required=["a"]),
                ]
            ],
        ],
    ),
    "habit.required_order": (
        [[[tool(properties=untyped("abcd"), required=["c", "a", "d", "b"])]]],
        [
            GOOD,
            [[tool(properties=untyped("dbca"), required=["d", "b", "a"])]],
            [[tool(properties=untyped("dbca"), required=["a", "b", "d"])]],
            [[tool(properties=untyped("ab"), required=["b", "a"])]],
        ],
    ),
    "habit.enum_order": (
        [[[prop(enum=["usd", "aud", "zar", "eur", "gbp", "eth", "cad", "usdt", "chf"])]]],
        [
            GOOD,
            [[prop(enum=["aud", "cad", "chf", "eur", "gbp", "jpy", "nzd", "usd", "zar"])]],
            [[prop(enum=["low", "high", "mid"])]],
            [[prop(enum=list(range(20)))]],
        ],
    ),
    "habit.key_order": (
        [
            [
                [
                    tool("a", properties={"x": {"type": "string", "title": "x", "description": "x"}}),
                    tool("b", properties={"x": {"title": "x", "type": "string", "description": "x"}}),
                    tool("c", properties={"x": {"description": "x", "title": "x", "type": "string"}}),
                ]
            ]
        ],
        [
            GOOD,
            [
                [
                    tool("a", properties={"x": {"type": "string", "title": "x", "description": "x"}}),
                    tool("b", properties={"x": {"title": "x", "type": "string", "description": "x"}}),
                ]
            ],
        ],
    ),
    "habit.live_values": (
        [
            [[prop(enum=["3f2504e0-4f89-11d3-9a0c-0305e82c3301", "4f2504e0-4f89-11d3-9a0c-0305e82c3301"])]],
            [[prop(type="string", default="2026-11-30T09:15:00Z")]],
        ],
        [GOOD, [[prop(enum=["asc", "desc"])]], [[prop(default=10)]], [[prop(default="main")]]],
    ),
    "list.order": ([[[A, B], [B, A]]], [GOOD, [[A, B], [A, B]], [[A, B], [A, B, C]]]),
    "list.set": ([[[A, B], [A]], [[A], [A, C]]], [GOOD, [[A, B], [B, A]], [[A], [A]]]),
    "list.definitions": (
        [[[A], [tool("a_note", "Another text.")]]],
        [GOOD, [[A, B], [B, A]], [[A], [REKEYED]], [[A], [A, B]]],
    ),
    "list.key_order": ([[[A], [REKEYED]]], [GOOD, [[A], [A]], [[A], [tool("a_note", "Another text.")]]]),
}
