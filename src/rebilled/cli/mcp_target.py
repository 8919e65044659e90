"""What the commands that ask a server take from the command line: headers, environment, numbers within bounds."""

from __future__ import annotations

import os

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "TEMP")


def within(option: str, value: int, least: int, most: int) -> int:
    """The value of an option. Raises InputError where it is out of range."""
    from rebilled.errors import InputError

    if not least <= value <= most:
        raise InputError(f"{option} {value} is out of range; choose {least:,} to {most:,}")
    return value


def headers_of(given: list[str]) -> dict[str, str]:
    """The headers given as `NAME: VALUE`. Raises InputError for anything else."""
    from rebilled.errors import InputError

    headers = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not value.strip() or not line.isprintable():
            raise InputError("--header wants 'NAME: VALUE' in one line, such as 'Authorization: Bearer ...'")
        headers[name.strip().lower()] = value.strip()
    return headers


def environment_of(given: list[str]) -> dict[str, str]:
    """A few variables of our own that programs need, and those that the user gives."""
    from rebilled.errors import InputError

    chosen = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    for word in given:
        name, equals, value = word.partition("=")
        if not name or (not equals and name not in os.environ):
            raise InputError(f"--env {name!r} is not set here; give its value as NAME=VALUE, or set it before")
        chosen[name] = value if equals else os.environ[name]
    return chosen
