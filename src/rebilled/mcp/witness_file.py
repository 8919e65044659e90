"""Files that speak of a server beside a trace: the result of a probe, or a recording of a tee."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import msgspec
from msgspec.structs import replace

from rebilled import __version__
from rebilled.errors import InputError
from rebilled.mcp.artifact import SCHEMA, Probe
from rebilled.mcp.artifact import load as load_probe
from rebilled.mcp.offline import judge_recordings
from rebilled.mcp.recording import is_recording, read_recording, tool_lists
from rebilled.mcp.witness import Witness, witness_of
from rebilled.model import Json

MAX_BYTES = 512 << 20
_NAMED = re.compile(r"([\w.@-]+)=(.+)", re.DOTALL)


def load_witness(given: str) -> Witness:
    """The witness in a file, given as a path or as NAME=PATH with the server's name in the trace.

    Raises InputError for a file that cannot be read, or is neither a probe nor a recording.
    """
    match = _NAMED.fullmatch(given)
    name, path = (match[1], match[2]) if match and not Path(given).exists() else (None, given)
    data = _read(path)
    if is_recording(data):
        connections = read_recording(data, path)
        probe = judge_recordings(connections, version=__version__, key=secrets.token_bytes(32), name=name)
        names = {_name(tool) for tools in tool_lists(connections) for tool in tools}
        return witness_of(probe, path, names - {""})
    probe = _probe(data, path)
    if name is not None:
        probe = replace(probe, server=replace(probe.server, name=name))
    return witness_of(probe, path)


def _name(tool: Json) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def _read(path: str) -> bytes:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            most = f"{MAX_BYTES >> 20} MiB"
            raise InputError(f"--mcp {path!r} is larger than {most}; give a probe's JSON or a shorter recording")
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"--mcp {path!r} cannot be read: {error.strerror or error}; check the path") from None


def _probe(data: bytes, path: str) -> Probe:
    hint = "write one with `analyze mcp probe ... -o FILE.json` or `analyze mcp tee -o FILE`"
    try:
        probe = load_probe(data)
    except (msgspec.DecodeError, RecursionError):
        raise InputError(f"--mcp {path!r} is neither a probe nor a recording; {hint}") from None
    if probe.schema != SCHEMA:
        raise InputError(f"--mcp {path!r} has the schema {probe.schema!r}, not {SCHEMA}; {hint}")
    if not any(leg.lists for leg in probe.legs):
        raise InputError(f"--mcp {path!r}: the probe read no list of tools ({probe.verdict}); probe the server again")
    return probe
