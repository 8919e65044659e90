"""Every error a caller can meet; each message says what is wrong, where, and what to do."""

from __future__ import annotations


class RebilledError(Exception):
    """Base of every error that rebilled raises on purpose. exit_code: what the command line answers."""

    exit_code = 2


class InputError(RebilledError):
    """A path, an option or a file that cannot be used: the command line answers with exit code 2."""


class AccessError(InputError):
    """A place that wants credentials, or better ones: exit code 3."""

    exit_code = 3


class UnreachableError(InputError):
    """A place on the network that does not answer: exit code 4."""

    exit_code = 4


class RecordError(RebilledError):
    """One record that cannot be read; readers turn it into a listed skip with this reason.

    reason: the machine-readable word of `inputs.skipped`, e.g. `not_json`, `too_deep`, `no_request`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
