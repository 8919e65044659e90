"""An MCP server with one fault, over stdio or HTTP: python faulty_server.py MODE [--era E] [--state FILE] [--http].

Only the standard library, so that it starts fast. A mode is a name in MODES; each changes as little as possible of a
server that does everything right at 2025-06-18, 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

MODERN = "2026-07-28"
LEGACY = ("2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
NAMES = ("add_note", "close_note", "drop_note", "find_notes", "list_notes", "move_note", "read_note")
SECRET_WORDS = "zanzibar quokka"
"""Words that stand in every text of the server, to be looked for in what a probe writes."""

BROKEN = (
    *("silent", "huge_line", "endless_line", "flood", "crash", "crash_later", "garbage", "garbage_flood", "hang_later"),
    *("deep", "not_utf8", "list_error", "no_list", "result_is_list", "stops_reading", "closes_stdout"),
)
MODES = (
    *("good", "shuffle", "order_by_connection", "set_by_connection", "side_effect", "side_effect_of_discover"),
    *("set_flaps", "changed_once", "edited_once", "key_order", "escapes", "white_space", "timestamp", "under_load"),
    *("ttl_missing", "ttl_null", "ttl_fraction", "ttl_text", "ttl_negative", "ttl_zero", "ttl_whole_float", "ttl_long"),
    *("scope_missing", "scope_other", "hints_in_meta", "hints_on_tools", "hints_vary", "type_missing", "type_unknown"),
    *("legacy_hints", "pages", "pages_scopes", "empty_cursor", "cursor_loop", "endless_pages", "one_tool", "no_tools"),
    *("name_bad", "name_twice", "name_missing", "schema_null", "schema_missing", "schema_no_type", "schema_invalid"),
    *("schema_draft07", "schema_unknown_dialect", "output_invalid", "output_array", "header_bad", "header_good"),
    *("no_discover", "version_error_bad", "version_error_good", "listen_good", "listen_refused", "capabilities"),
    *("chatty", "slow", "forks", "ignores_end", "other_lists", "prompt_hints_missing", "prompts_by_connection"),
    *("breaks_out", "resource_unhinted", "duplicate_keys", "no_capability", "public"),
    *BROKEN,
)


# ---- what is listed --------------------------------------------------------------------------------------------------


def tool(name: str) -> dict[str, object]:
    return {
        "name": name,
        "description": f"Café {name}: {SECRET_WORDS}",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string", "description": SECRET_WORDS}, "deep": {"type": "boolean"}},
            "required": ["id"],
        },
    }


def chance(seed: int):  # type: ignore[no-untyped-def]
    """A random generator, imported late since most modes need none."""
    import random

    return random.Random(seed)


class Connection:
    """What one client of the server has done."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lists = 0
        self.discovered = False
        self.capabilities: dict[str, object] = {}


class Server:
    """Answers messages in one mode."""

    def __init__(self, mode: str, era: str = "both", state: str | None = None) -> None:
        assert mode in MODES, mode
        self.mode = mode
        self.modern = era in ("both", "modern")
        self.legacy = {"both": LEGACY, "modern": (), "legacy": LEGACY}.get(era, (era,))
        self.state = state
        self.lock = threading.Lock()
        self.busy = 0
        self.counts: dict[str, int] = {}
        self.methods: list[str] = []

    def count(self, what: str) -> int:
        """How often this was counted before, over all processes."""
        with self.lock:
            if self.state is None:
                self.counts[what] = self.counts.get(what, -1) + 1
                return self.counts[what]
            file = os.open(f"{self.state}.{what}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, b".")
            size = os.fstat(file).st_size
            os.close(file)
            return size - 1

    def connect(self) -> Connection:
        return Connection(self.count("connections"))

    # ---- answers -----------------------------------------------------------------------------------------------------

    def answer(self, message: dict, connection: Connection) -> tuple[int, dict | None]:  # type: ignore[type-arg]
        """The HTTP status and the answer; no answer to a notification."""
        if "id" not in message or "method" not in message:
            return 202, None
        method, params = message["method"], message.get("params") or {}
        meta = params.get("_meta") or {}
        revision = meta.get(f"{META}protocolVersion")
        if method == "initialize":
            return self.initialize(message, params, connection)
        if revision is None and self.legacy:
            return 200, self.reply(message, self.result(method, params, connection, modern=False))
        if not self.modern:
            return 400, self.error(message, -32000, "Server not initialized")
        if revision != MODERN:
            return self.refuse_version(message, revision)
        connection.capabilities = meta.get(f"{META}clientCapabilities", {})
        if method == "server/discover" and self.mode == "no_discover":
            return 404, self.error(message, -32601, "Method not found")
        if method == "subscriptions/listen":
            return self.listen(message)
        return 200, self.reply(message, self.result(method, params, connection, modern=True))

    def initialize(self, message: dict, params: dict, connection: Connection) -> tuple[int, dict]:  # type: ignore[type-arg]
        if not self.legacy:
            return 400, self.error(message, -32022, "Unsupported", {"supported": [MODERN], "requested": "?"})
        asked = params["protocolVersion"]
        connection.capabilities = params.get("capabilities", {})
        result = {
            "protocolVersion": asked if asked in self.legacy else self.legacy[-1],
            "capabilities": self.capabilities(),
            "serverInfo": {"name": SECRET_WORDS, "version": "1"},
            "instructions": SECRET_WORDS,
        }
        return 200, self.reply(message, result)

    def refuse_version(self, message: dict, revision: object) -> tuple[int, dict]:  # type: ignore[type-arg]
        if self.mode == "version_error_bad":
            return 200, self.error(message, -32602, SECRET_WORDS)
        data = {"supported": [MODERN], "requested": revision}
        return 400, self.error(message, -32022, SECRET_WORDS, data)

    def listen(self, message: dict) -> tuple[int, dict]:  # type: ignore[type-arg]
        if self.mode == "listen_good":
            note = {"_meta": {f"{META}subscriptionId": message["id"]}, "notifications": {"toolsListChanged": True}}
            return 200, {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": note}
        return 404, self.error(message, -32601, SECRET_WORDS)

    def reply(self, message: dict, result: object) -> dict:  # type: ignore[type-arg]
        if isinstance(result, dict) and "__error__" in result:
            return self.error(message, result["__error__"], SECRET_WORDS)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def error(self, message: dict, code: int, text: str, data: object = None) -> dict:  # type: ignore[type-arg]
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, "data": data}}

    def capabilities(self) -> dict[str, object]:
        tools: dict[str, object] = {"listChanged": True} if self.mode.startswith("listen") else {}
        others = ("other_lists", "prompt_hints_missing", "prompts_by_connection", "resource_unhinted")
        more: dict[str, object] = {"prompts": {}, "resources": {}} if self.mode in others else {}
        return more if self.mode == "no_capability" else {"tools": tools, **more}

    # ---- results -----------------------------------------------------------------------------------------------------

    def result(self, method: str, params: dict, connection: Connection, *, modern: bool) -> object:  # type: ignore[type-arg]
        if method == "tools/list":
            return self.tools_list(params.get("cursor"), connection, modern=modern)
        if method == "server/discover" and modern:
            connection.discovered = True
            return self.hinted({"supportedVersions": [MODERN], "capabilities": self.capabilities()}, discover=True)
        other = {"prompts/list": "prompts", "resources/list": "resources", "resources/read": "contents"}.get(method)
        if method == "resources/templates/list":
            other = "resourceTemplates"
        if other is None:
            return {"__error__": -32601}
        names = [f"{other}_{place}" for place in range(3)]
        if self.mode == "prompts_by_connection" and other == "prompts":
            names = names[: 2 + connection.number % 2]
        result = {other: [{"name": name, "uri": f"x://{name}", "uriTemplate": f"x://{name}/{{a}}"} for name in names]}
        bare = {"prompt_hints_missing": "prompts/list", "resource_unhinted": "resources/read"}.get(self.mode)
        return self.hinted(result, bare=method == bare) if modern else result

    def tools_list(self, cursor: object, connection: Connection, *, modern: bool) -> object:
        if self.mode == "list_error":
            return {"__error__": -32603}
        if self.mode == "no_capability":
            return {"__error__": -32601}
        if self.mode == "no_list":
            return {"tools": SECRET_WORDS}
        if self.mode == "result_is_list":
            return [SECRET_WORDS]
        if self.mode == "under_load":
            self.busy += 1
            time.sleep(0.03)
            crowded = self.busy > 1
            self.busy -= 1
        tools = [tool(name) for name in NAMES]
        if cursor is None:
            self.listed = self.count("lists")
        if self.mode == "under_load" and crowded:
            chance(self.count("crowds")).shuffle(tools)
        if cursor is None and self.mode != "under_load":
            self.change(tools, connection)
        result: dict[str, object] = {"tools": tools}
        self.page(result, cursor)
        connection.lists += cursor is None
        return self.hinted(result) if modern or self.mode == "legacy_hints" else result

    def change(self, tools: list[dict], connection: Connection) -> None:  # type: ignore[type-arg]
        """What a mode does to the tools of one list."""
        mode, count = self.mode, self.listed
        if mode == "shuffle":
            chance(count * 7919 + 13).shuffle(tools)
        elif mode == "order_by_connection":
            chance(connection.number).shuffle(tools)
        elif self.lacks_one(connection):
            del tools[2]
        elif mode == "changed_once" and count >= 5:
            tools.append(tool("zip_notes"))
        elif mode == "edited_once" and count >= 5:
            tools[0]["description"] += "!"
        elif mode == "key_order" and count % 2:
            tools[1]["inputSchema"]["properties"] = dict(reversed(tools[1]["inputSchema"]["properties"].items()))
        elif mode == "timestamp":
            tools[3]["description"] += f" As of 2026-11-30T10:{count // 60:02}:{count % 60:02}Z."
        elif mode == "capabilities" and "sampling" in connection.capabilities:
            tools.append(tool("ask_model"))
        else:
            self.misdefine(tools)

    def lacks_one(self, connection: Connection) -> bool:
        """Whether this list is a tool short."""
        short = {
            "set_by_connection": connection.number % 2 == 1,
            "side_effect": not connection.lists,
            "side_effect_of_discover": connection.discovered,
            "set_flaps": self.mode == "set_flaps" and chance(self.listed * 31 + 5).random() < 0.5,
        }
        return short.get(self.mode, False)

    def misdefine(self, tools: list[dict]) -> None:  # type: ignore[type-arg]
        """The modes with a bad tool."""
        second = tools[1]
        schema = second["inputSchema"]
        changed: dict[str, object] = {
            "schema_null": None,
            "schema_no_type": {"properties": {}},
            "schema_invalid": {"type": "object", "properties": {"a": {"type": "text"}}},
            "schema_draft07": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": "a"},
            "schema_unknown_dialect": {"$schema": "https://example.com/own", "type": "object"},
        }
        if self.mode in changed:
            second["inputSchema"] = changed[self.mode]
        elif self.mode == "schema_missing":
            del second["inputSchema"]
        elif self.mode.startswith("name_"):
            if self.mode == "name_missing":
                del second["name"]
            else:
                second["name"] = "close note, please" if self.mode == "name_bad" else "add_note"
        elif self.mode == "output_invalid":
            second["outputSchema"] = {"type": "object", "minProperties": "two"}
        elif self.mode == "output_array":
            second["outputSchema"] = {"type": "array"}
        elif self.mode == "header_bad":
            schema["properties"]["deep"]["x-mcp-header"] = "Not a token"
        elif self.mode == "header_good":
            schema["properties"]["deep"]["x-mcp-header"] = "Deep"
        elif self.mode == "one_tool":
            del tools[1:]
        elif self.mode == "no_tools":
            tools.clear()

    def page(self, result: dict, cursor: object) -> None:  # type: ignore[type-arg]
        """Cut the list into pages where the mode has some."""
        tools = result["tools"]
        if self.mode in ("pages", "pages_scopes", "empty_cursor"):
            mark = "" if self.mode == "empty_cursor" else "next"
            result["tools"] = tools[:4] if cursor is None else tools[4:]
            if cursor is None:
                result["nextCursor"] = mark
            result["last"] = cursor is not None
        elif self.mode == "cursor_loop":
            result["nextCursor"] = "again"
        elif self.mode == "endless_pages":
            result["nextCursor"] = f"{cursor or ''}x"
            result["tools"] = tools[:1]

    def hinted(self, result: dict, *, discover: bool = False, bare: bool = False) -> dict:  # type: ignore[type-arg]
        """The result with the hints of the mode."""
        mode = self.mode
        last = result.pop("last", False)
        hints: dict[str, object] = {"resultType": "complete", "ttlMs": 300_000, "cacheScope": "private"}
        ttls = {"ttl_null": None, "ttl_fraction": 1500.5, "ttl_text": "60000", "ttl_negative": -1, "ttl_zero": 0}
        ttls |= {"ttl_whole_float": 60000.0, "ttl_long": 10**13, "hints_vary": 1000 + self.counts.get("lists", 0)}
        if mode == "hints_vary" and self.state is not None and not discover:
            ttls["hints_vary"] = 1000 + self.listed
        if mode in ttls:
            hints["ttlMs"] = ttls[mode]
        words: dict[str, tuple[str, object]] = {
            "scope_other": ("cacheScope", "shared"),
            "type_unknown": ("resultType", "partial"),
            "public": ("cacheScope", "public"),
        }
        if mode in words:
            hints[words[mode][0]] = words[mode][1]
        if mode == "pages_scopes" and last:
            hints["cacheScope"] = "public"
        for name in {"ttl_missing": ["ttlMs"], "scope_missing": ["cacheScope"], "type_missing": ["resultType"]}.get(
            mode, []
        ):
            del hints[name]
        if bare or mode in ("hints_in_meta", "hints_on_tools"):
            moved = {"ttlMs": hints.pop("ttlMs"), "cacheScope": hints.pop("cacheScope")}
            if mode == "hints_in_meta":
                result["_meta"] = moved
            for item in result.get("tools", []) if mode == "hints_on_tools" else []:
                item |= moved
        return {**result, **hints}

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def encode(self, answer: dict) -> bytes:  # type: ignore[type-arg]
        """An answer as bytes; some modes spell it otherwise each time."""
        odd = self.counts.get("encoded", 0) % 2 == 1
        self.counts["encoded"] = self.counts.get("encoded", 0) + 1
        spaced = self.mode == "white_space" and odd
        text = json.dumps(
            answer,
            ensure_ascii=self.mode == "escapes" and odd,
            separators=(", ", ": ") if spaced else (",", ":"),
        )
        if self.mode == "duplicate_keys":
            text = text.replace('"required":["id"]', '"required":[],"required":["id"]')
        if self.mode == "deep":
            text = text.replace('"deep":{"type":"boolean"}', '"deep":' + '{"not":' * 200 + "true" + "}" * 200)
        return text.encode()

    def ruin(self, message: dict) -> str | None:  # type: ignore[type-arg]
        """The way in which a broken mode answers this message, if it does not answer as usual."""
        lists = message.get("method") == "tools/list"
        if self.mode in ("crash_later", "hang_later") and lists and self.count("ruined") >= 4:
            return "crash" if self.mode == "crash_later" else "silent"
        always = ("silent", "crash", "garbage", "garbage_flood", "flood", "endless_line", "not_utf8", "closes_stdout")
        if self.mode in always:
            return self.mode
        return self.mode if self.mode == "huge_line" and lists else None


# ---- stdio -----------------------------------------------------------------------------------------------------------


def write(data: bytes) -> None:
    os.write(1, data) if len(data) < 4096 else sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def ruin_stdio(way: str) -> None:
    """Misbehave; comes back only where a client has to wait in vain."""
    if way == "crash":
        sys.stderr.write(SECRET_WORDS)
        os._exit(3)
    if way == "closes_stdout":
        os.close(1)
        time.sleep(60)
    if way == "garbage":
        write(b"Starting up... \xff\xfe listening!\n{not json}\n[1,2]\n")
    if way == "not_utf8":
        write(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"\xff"}]}}\n')
    piece = {
        "garbage_flood": b"loading " + SECRET_WORDS.encode() * 400 + b"\n",
        "flood": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + b"x" * 4000 + b'"}}\n',
        "endless_line": b"x" * 65536,
        "huge_line": b'{"jsonrpc":"2.0","id":' + b" " * (9 << 20) + b"1}\n",
    }.get(way)
    while piece is not None:
        write(piece)
        if way == "huge_line":
            return


def serve_stdio(server: Server) -> None:
    connection = server.connect()
    if server.mode == "breaks_out":
        break_out()
    if server.mode == "forks":
        fork_children()
    if server.mode == "ignores_end":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if server.mode == "stops_reading":
        time.sleep(60)
    lock = threading.Lock()

    def handle(message: dict) -> None:  # type: ignore[type-arg]
        way = server.ruin(message)
        if way is not None:
            ruin_stdio(way)
            return
        if server.mode == "slow":
            time.sleep(0.2)
        if server.mode == "chatty" and "method" in message:
            write(b"a line for people\n")
            write(b'{"jsonrpc":"2.0","id":"s1","method":"roots/list"}\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
            write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
            write(b'{"jsonrpc":"2.0","id":999999,"result":{}}\n\n')
        _, answer = server.answer(message, connection)
        if answer is not None:
            with lock:
                write(server.encode(answer) + b"\n")

    for line in sys.stdin.buffer:
        message = json.loads(line)
        if server.mode == "under_load":
            threading.Thread(target=handle, args=(message,)).start()
        else:
            handle(message)
    if server.mode == "ignores_end":
        while True:
            time.sleep(60)


def fork_children() -> None:
    """Children that would outlive the server: one in its group, one in a session of its own, both deaf to requests."""
    import signal

    for alone in (False, True):
        if os.fork() == 0:
            if alone:
                os.setsid()
                if os.fork():
                    os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.close(0)
            time.sleep(120)
            os._exit(0)


def break_out() -> None:
    """A child of a child that leaves group, session, parent and environment, and starts another that does the same."""
    code = (
        "import os, sys, time\n"
        "if len(sys.argv) > 2 and os.fork() == 0:\n"
        "    os.setsid()\n"
        "    words = [sys.executable, '-S', '-E', '-c', 'import time; time.sleep(120)', sys.argv[1]]\n"
        "    os.execve(sys.executable, words, {})\n"
        "time.sleep(120)\n"
    )
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 3)
        os.execve(sys.executable, [sys.executable, "-S", "-E", "-c", code, " ".join(sys.argv), "twice"], {})


# ---- HTTP ------------------------------------------------------------------------------------------------------------


def serve_http(server: Server, port: int = 0, *, token: str | None = None, events: bool = False):  # type: ignore[no-untyped-def]
    """A running HTTP server in a thread; its address is `server_port`. events: answer in event streams."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            self.connection_ = server.connect()

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if token is not None and self.headers.get("authorization") != token:
                self.send(401, b"", {"www-authenticate": "Bearer"})
                return
            server.methods.append(message.get("method", ""))
            way = server.ruin(message)
            if way is not None:
                self.ruin(way)
                return
            refused = self.check(message)
            if refused is not None:
                self.send(400, server.encode(refused))
                return
            if server.mode == "slow":
                time.sleep(0.2)
            status, answer = server.answer(message, self.connection_)
            if answer is None:
                self.send(status, b"")
            elif events or "method" in answer:
                before = b': keep-alive\n\ndata: {"jsonrpc":"2.0",\ndata: "method":"notifications/message"}\n\n'
                asked = b'event: message\ndata: {"jsonrpc":"2.0","id":"s1","method":"roots/list"}\r\n\r\n'
                data = before + asked + b"id: 4\ndata: " + server.encode(answer) + b"\n\n"
                self.send(status, data, {"content-type": "text/event-stream"})
            else:
                more = {"mcp-session-id": "s-1"} if message.get("method") == "initialize" else {}
                self.send(status, server.encode(answer), {"content-type": "application/json", **more})

        def check(self, message: dict) -> dict | None:  # type: ignore[type-arg]
            """The error for headers that do not say what the body says."""
            params = message.get("params") or {}
            revision = (params.get("_meta") or {}).get(f"{META}protocolVersion")
            if revision is None or not server.modern:
                return None
            named = params.get("uri") if message["method"] == "resources/read" else None
            told = (
                self.headers.get("mcp-protocol-version"),
                self.headers.get("mcp-method"),
                self.headers.get("mcp-name"),
            )
            accepts = self.headers.get("accept", "")
            if told == (revision, message["method"], named) and "json" in accepts and "event-stream" in accepts:
                return None
            return server.error(message, -32020, "Header mismatch")

        def ruin(self, way: str) -> None:
            self.close_connection = True
            if way in ("silent", "closes_stdout"):
                time.sleep(3)
            elif way in ("garbage", "not_utf8"):
                self.send(200, b"<html>\xff</html>", {"content-type": "text/html"})
            elif way in ("flood", "garbage_flood", "endless_line", "huge_line"):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if way == "flood" else "application/json")
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b"data: 1\n\n" * 1000)
                except OSError:
                    pass

        def do_DELETE(self) -> None:
            self.send(200, b"")

        def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    running = Quiet(("127.0.0.1", port), Handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return running


def main(words: list[str]) -> None:
    options = dict(zip(words[1::2], words[2::2], strict=False))
    state = options.get("--state")
    server = Server(words[0], options.get("--era", "both"), state)
    if "--http" in options:
        running = serve_http(server, int(options["--http"]))
        print(running.server_port, flush=True)
        threading.Event().wait()
    serve_stdio(server)


if __name__ == "__main__":
    main(sys.argv[1:])
