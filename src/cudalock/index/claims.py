"""What a page claims of one file: its hashes and its metadata sidecar, checked for their form."""

import re
from collections.abc import Mapping

from cudalock.wheel.names import format_quoted

__all__ = ["SHA256", "RejectedError", "check_hex", "html_claim", "json_claim"]

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_HEX_LENGTHS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}
_HEX = re.compile(r"[0-9A-Fa-f]+\Z")


class RejectedError(Exception):
    """One file is ruled out, for the reason of this kind. Never leaves the reading of a page."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def check_hex(algorithm: str, digest: str) -> None:
    """Raise `RejectedError` for a digest of a known algorithm that is not of its length."""
    length = _HEX_LENGTHS.get(algorithm)
    if length is not None and not (len(digest) == length and _HEX.match(digest)):
        raise RejectedError(
            "bad-hash",
            f"expected a {algorithm} of {length} hexadecimal digits, found {format_quoted(digest)}",
        )


def html_claim(text: str) -> str | bool:
    """Read ``data-core-metadata``: the sidecar's sha256, or whether there is one."""
    # PEP 658: "the repository SHOULD provide the hash as <hashname>=<hashvalue>, else `true`".
    algorithm, _, digest = text.strip().partition("=")
    if algorithm == "sha256":
        return digest
    return algorithm.lower() != "false"


def json_claim(claim: Mapping[str, str] | bool | None) -> str | bool | None:
    """Read ``core-metadata`` of JSON: the sidecar's sha256, whether there is one, or nothing."""
    if isinstance(claim, Mapping):
        return claim.get("sha256", True)
    return claim
