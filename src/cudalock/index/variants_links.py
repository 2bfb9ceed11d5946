"""Links on a project page to ``{name}-{version}-variants.json`` (PEP 825, "Index-level metadata").

Such a file is no wheel and is no rejection either: it says what the variant labels of one version
stand for. Here it is only noted where it is; `variants_fetch.py` reads it.
"""

from collections.abc import Mapping

from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.index.claims import SHA256, RejectedError
from cudalock.wheel.filename import WheelFile
from cudalock.wheel.names import parse_project_name, parse_version
from cudalock.wheel.variants import VariantsLink

__all__ = ["VARIANTS_SUFFIX", "VariantsLinks"]

VARIANTS_SUFFIX = "-variants.json"
# How large a name may be is left to the wheels' own limit: a longer one belongs to none of them.
_NAME_LIMIT = 255


class VariantsLinks:
    """The links of one page, by project and version."""

    def __init__(self) -> None:
        """Begin with none."""
        self._links: dict[tuple[str, Version], VariantsLink] = {}

    def note(
        self, filename: str, url: str | None, hashes: Mapping[str, str], project: str | None
    ) -> None:
        """Note a link; raises `RejectedError` for one that cannot be used, saying why.

        PEP 825: name and version are "normalized according to the same rules as wheel files".
        """
        parts = filename[: -len(VARIANTS_SUFFIX)].split("-")
        if len(filename) > _NAME_LIMIT or len(parts) != 2:
            raise RejectedError("not-a-wheel", "variant metadata without a name and a version")
        try:
            key = parse_project_name(parts[0]), parse_version(parts[1].replace("_", "-"))
        except WheelError as error:
            raise RejectedError("not-a-wheel", f"variant metadata: {error.message}") from error
        if project is not None and key[0] != project:
            raise RejectedError("other-project", f"variant metadata of {key[0]}")
        if url is None:
            raise RejectedError("not-a-wheel", "variant metadata at no http or https address")
        claimed = hashes.get("sha256", "").lower()
        if claimed and not SHA256.match(claimed):
            raise RejectedError("not-a-wheel", "variant metadata with a malformed sha256")
        known = self._links.get(key)
        if known is not None and known.url != url:
            raise RejectedError("not-a-wheel", f"variant metadata that is at {known.url} too")
        sha256 = dict.fromkeys((*(known.sha256 if known is not None else ()), claimed))
        self._links[key] = VariantsLink(url=url, sha256=tuple(h for h in sha256 if h))

    def of(self, wheel: WheelFile) -> VariantsLink | None:
        """Return the link for a wheel's version."""
        return self._links.get((wheel.project, wheel.version)) if self._links else None
