"""What keeps a server from being measured, as one word of a fixed list and a sentence of ours."""

from __future__ import annotations

from rebilled.errors import RebilledError

AUTH = ("auth_required", "forbidden_403")
"""Verdicts that ask for credentials."""

UNREACHABLE = "unreachable_"
"""How the verdicts begin that mean that nobody answered."""


class ProbeError(RebilledError):
    """A request that got no usable answer. verdict: the class; detail: a sentence that quotes nothing of the server's.

    status, code: of HTTP and JSON-RPC, where they were there; supported: the revisions named in the error.
    """

    def __init__(
        self,
        verdict: str,
        detail: str,
        *,
        status: int | None = None,
        code: int | None = None,
        supported: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = detail
        self.status = status
        self.code = code
        self.supported = supported
