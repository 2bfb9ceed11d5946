"""Project pages: the simple repository API in HTML (PEP 503) and JSON (PEP 691), to listed files.

Also obeyed: PEP 592 (yanked), PEP 629 (versions of the API), PEP 658 and 714 (metadata sidecars),
PEP 700 (size, upload time), PEP 792 (status). The dialects of real publishers differ in their
links, their hashes and their frames; a page of each is in `tests/pages/`. What a link says is read
here and nothing is fetched; which tags suit a target is the resolver's business.

A file that cannot be used is a counted rejection. A page that is none, or is cut, is an error:
what it does not list may well exist.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin

from cudalock.errors import UsageError, WheelError
from cudalock.index.address import WEB_URL, origin_of, shown_url, split_userinfo
from cudalock.index.anchors import CutPageError, HtmlPage, read_anchors
from cudalock.index.claims import SHA256, RejectedError, check_hex, html_claim, json_claim
from cudalock.index.entries import Entry, PageContext
from cudalock.index.failures import NotAPageError
from cudalock.index.json_page import JsonFile, read_json_page
from cudalock.index.variants_links import VARIANTS_SUFFIX, VariantsLinks
from cudalock.wheel.filename import WheelFile, parse_wheel_file
from cudalock.wheel.listing import FileRejection, ListedFile
from cudalock.wheel.names import format_quoted, parse_project_name

__all__ = ["PAGE_LIMIT", "NotAPageError", "PageContext", "ProjectPage", "parse_page"]

PAGE_LIMIT = 64 * 1024 * 1024
_JSON_TYPES = re.compile(r"application/(?:json|vnd\.pypi\.simple\.[a-z0-9]+\+json)\Z")
_HTML_TYPES = re.compile(
    r"(?:text/html|application/xhtml\+xml|application/vnd\.pypi\.simple\.[a-z0-9]+\+html)\Z"
)
# Folders below the page's own: plain characters, no step up and none that stays.
_BELOW = re.compile(r"(?:(?!\.{1,2}/)[A-Za-z0-9._~%+@=-]+/)+\Z")
_ARCHIVE = re.compile(
    r"\.(?:whl|zip|tar|tar\.gz|tgz|tar\.bz2|tar\.xz|tar\.z|egg|exe|msi|rpm|deb|dmg)\Z",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REFERENCE = re.compile(r"[!-\[\]-~]+\Z")
_FOLDER = re.compile(r"(?:\./)?(?!\.\.?/)[^/?#:\\]+/(?:index\.html)?\Z")
_EMPTY_PAGE = re.compile(r"\A(?:links for\b|simple (?:index|package)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """The wheels a page lists, one for each URL in the order of the page, and what was ruled out.

    ``unfit`` are the names of wheels that the context's filter turned away; ``status`` is a sentence
    on a project that is archived or deprecated.
    """

    files: tuple[ListedFile, ...]
    rejections: tuple[FileRejection, ...]
    unfit: tuple[str, ...] = ()
    status: str | None = None


def parse_page(
    body: bytes,
    *,
    content_type: str | None,
    url: str,
    project: str | None,
    context: PageContext,
) -> ProjectPage:
    """Parse the page at ``url`` (where it was found in the end, redirects followed).

    With a ``project`` (any spelling), files of others are rejections of kind ``other-project``; with
    None every wheel of a flat page is listed. The other kinds are ``not-a-wheel``, ``bad-name``,
    ``bad-hash``, ``bad-url`` and ``quarantined``. Linear in the length of the page: about 5 ms for
    1,000 HTML links, and as much again for file names not met before.

    Raises `NotAPageError` naming the page for a body that is no project page.
    """
    page_url = split_userinfo(url)[0]
    reader = _Reader(
        url=page_url,
        project=None if project is None else parse_project_name(project),
        context=context,
    )
    if len(body) > PAGE_LIMIT:
        raise reader.not_a_page(f"one of {len(body)} bytes, where {PAGE_LIMIT} are read at most")
    if _is_json(body, content_type):
        reader.read_json(body)
    else:
        reader.read_html(body)
    return ProjectPage(
        files=tuple(
            entry.listed(context, reader.variants.of(entry.wheel))
            for entry in reader.entries.values()
        ),
        rejections=tuple(reader.rejections),
        unfit=tuple(reader.unfit),
        status=reader.status,
    )


def _is_json(body: bytes, content_type: str | None) -> bool:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if _JSON_TYPES.match(kind):
        return True
    if _HTML_TYPES.match(kind):
        return False
    return body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


@dataclass(slots=True, kw_only=True)
class _Reader:
    url: str
    project: str | None
    context: PageContext
    entries: dict[str, Entry] = field(default_factory=dict)
    rejections: list[FileRejection] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    variants: VariantsLinks = field(default_factory=VariantsLinks)
    status: str | None = None
    _base: str = ""
    _folders: dict[str, str] = field(default_factory=dict)
    _roots: set[str] = field(default_factory=set)
    _shown: str = ""

    def __post_init__(self) -> None:
        self._shown = shown_url(self.url)

    def not_a_page(self, found: str) -> NotAPageError:
        return NotAPageError(f"expected a project page, found {found}", where=self._shown)

    def _reject(self, filename: str, text: str, error: RejectedError) -> None:
        self.rejections.append(
            FileRejection(
                filename=format_quoted(filename, 255)[1:-1],
                kind=error.kind,
                reason=error.reason,
                where=f"{self._shown}, anchor {format_quoted(text, 255)}",
            )
        )

    # HTML

    def read_html(self, body: bytes) -> None:
        text = body.decode("utf-8-sig", "replace")
        if text.lstrip()[:5] == "<?xml" and "<html" not in text[:1024].lower():
            raise self.not_a_page("XML")
        try:
            page = read_anchors(text)
        except CutPageError as error:
            raise self.not_a_page(error.found) from error
        self._check_version(page.meta.get("pypi:repository-version"))
        status = page.meta.get("pypi:project-status", "")
        if self._withheld(status, page.meta.get("pypi:project-status-reason")):
            return
        self._base = self.url
        if page.base is not None:
            self._base = self._joined(page.base.strip()) or self.url
        names_a_file = False
        for attributes, shown in page.anchors:
            href = attributes.get("href")
            if href is None:
                # `<a name=…>` is a place on the page and no link.
                continue
            try:
                names_a_file = self._read_anchor(href, attributes) or names_a_file
            except RejectedError as error:
                named = _file_name(href.partition("#")[0].partition("?")[0])
                names_a_file = names_a_file or _ARCHIVE.search(named) is not None
                self._reject(named or href, shown.strip() or href, error)
        if not names_a_file and any(_is_folder(a.attributes.get("href")) for a in page.anchors):
            # A project without files has an empty page; this one is of no project.
            raise self.not_a_page("a list of folders")
        if not names_a_file and not _declares_itself(page):
            raise self.not_a_page(
                f"HTML of {len(body)} bytes with {len(page.anchors)} links, none of which names a file"
            )

    def _read_anchor(self, href: str, attributes: Mapping[str, str]) -> bool:
        address, _, fragment = href.strip(" \t\n\f\r").partition("#")
        filename = _file_name(address.partition("?")[0])
        if not filename.endswith((".whl", VARIANTS_SUFFIX)):
            raise _no_wheel(filename)
        url = self._resolve(address)
        if url is None:
            raise RejectedError(
                "bad-url", f"expected an http or https address, found {format_quoted(href)}"
            )
        if self._turns_away(filename):
            return True
        hashes = dict(part.partition("=")[::2] for part in fragment.split("&") if "=" in part)
        if filename.endswith(VARIANTS_SUFFIX):
            self.variants.note(filename, url, hashes, self.project)
            return True
        wheel = self._parse_name(filename)
        # PEP 714: "if both are present, use data-core-metadata".
        claim = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        entry = self._entry(wheel, url, hashes, None if claim is None else html_claim(claim))
        entry.requires_python = entry.requires_python or attributes.get("data-requires-python")
        if (reason := attributes.get("data-yanked")) is not None:
            entry.yanked = entry.yanked or reason or True
        # Not of any PEP, but PyTorch's pages say it so.
        entry.upload_time = entry.upload_time or attributes.get("data-upload-time")
        return True

    def _resolve(self, reference: str) -> str | None:
        """Resolve a link against the page, or None for one that leads to no web address.

        Links of one page share their folders, and joining costs more than all the rest, so each
        folder is joined once.
        """
        if WEB_URL.match(reference):
            folder = reference[: reference.find("/", 8) + 1] or reference
            if folder not in self._folders:
                self._folders[folder] = self._joined(reference)
            return reference if self._folders[folder] else None
        if not reference:
            # A fragment alone is a place on this page.
            return self.url
        if not _REFERENCE.match(reference) or _SCHEME.match(reference):
            return None
        if reference.startswith("//"):
            # RFC 3986, 4.2: what follows is a host, also where nothing comes behind it.
            return self._joined(reference) or None
        path, mark, query = reference.partition("?")
        head, slash, tail = path.rpartition("/")
        if tail in (".", ".."):
            head, slash, tail = path, "/", ""
        below = ""
        if _BELOW.match(head + slash):
            # RFC 3986, 5.2.3: a plain path goes behind the last slash of the base, as it stands.
            head, slash, below = "", "", head + slash
        if head + slash not in self._folders:
            self._folders[head + slash] = self._joined(head + slash or "./")
        folder = self._folders[head + slash]
        return folder + below + tail + mark + query if folder else None

    def _joined(self, reference: str) -> str:
        try:
            joined = urljoin(self._base or self.url, reference)
            if WEB_URL.match(joined):
                root = joined[: joined.find("/", 8)]
                if root not in self._roots:
                    origin_of(joined)
                    self._roots.add(root)
                return joined
        except (ValueError, UsageError):
            pass
        return ""

    # JSON

    def read_json(self, body: bytes) -> None:
        page = read_json_page(body, self.not_a_page, self._turns_away)
        self._check_version(page.api_version)
        if page.name is not None and self.project is not None:
            try:
                named = parse_project_name(page.name)
            except WheelError as error:
                raise self.not_a_page(f"one named {format_quoted(page.name)}") from error
            if named != self.project:
                raise self.not_a_page(f"that of {named} where {self.project} was asked for")
        if self._withheld(page.status, page.status_reason):
            return
        self._base = self.url
        for file in page.files:
            try:
                self._read_json_file(file)
            except RejectedError as error:
                self._reject(file.filename, file.filename, error)

    def _read_json_file(self, file: JsonFile) -> None:
        if file.filename.endswith(VARIANTS_SUFFIX):
            url = self._resolve(file.url.partition("#")[0])
            self.variants.note(file.filename, url, file.hashes, self.project)
            return
        wheel = self._parse_name(file.filename)
        address = file.url.partition("#")[0]
        url = self._resolve(address)
        if url is None:
            raise RejectedError(
                "bad-url", f"expected an http or https address, found {format_quoted(file.url)}"
            )
        last = _file_name(address.partition("?")[0])
        if last.endswith(".whl") and last != file.filename:
            # PEP 691 makes `filename` the name; an address that names another wheel contradicts it.
            raise RejectedError(
                "bad-name",
                f"expected the address of this file, found that of {format_quoted(last)}",
            )
        claim = file.core_metadata
        entry = self._entry(wheel, url, file.hashes, json_claim(claim))
        entry.requires_python = entry.requires_python or file.requires_python
        entry.size = file.size if entry.size is None else entry.size
        entry.upload_time = entry.upload_time or file.upload_time
        entry.yanked = entry.yanked or file.yanked

    # Both

    def _check_version(self, version: str | None) -> None:
        # PEP 629: "if the major version is greater than the client supports, the client MUST fail".
        if version is not None and not re.match(r"1(?:\.[0-9]+)?\s*\Z", version.lstrip()):
            raise self.not_a_page(
                f"one of version {format_quoted(version)} of the API, where 1.x is read"
            )

    def _turns_away(self, filename: str) -> bool:
        """Note a wheel of this project that the target's tags rule out at a glance."""
        fit = self.context.fit
        if fit is None or not filename.endswith(".whl") or fit.admits(filename):
            return False
        if self.project is not None:
            try:
                if parse_project_name(filename.partition("-")[0]) != self.project:
                    return False
            except WheelError:
                return False
        self.unfit.append(filename)
        return True

    def _withheld(self, status: str, reason: str | None) -> bool:
        """Note a project's status (PEP 792); return whether its files are not offered."""
        status = status.strip().lower()
        if status in ("", "active"):
            return False
        why = f": {format_quoted(reason.strip(), 200)[1:-1]}" if reason and reason.strip() else ""
        if status == "quarantined":
            # PEP 792: the index "does not offer any files" of such a project for installation.
            error = RejectedError(
                "quarantined", f"the index has this project in quarantine (PEP 792){why}"
            )
            self._reject(self.project or "", self.project or "", error)
            return True
        project = self.project or "its project"
        self.status = f"{self.context.index} marks {project} as {format_quoted(status)[1:-1]}{why}"
        return False

    def _parse_name(self, filename: str) -> WheelFile:
        if not filename.endswith(".whl"):
            raise _no_wheel(filename)
        try:
            # The project comes first, so that a flat page of thousands of others costs little.
            found = parse_project_name(filename.partition("-")[0])
            if self.project is not None and found != self.project:
                raise RejectedError("other-project", f"a wheel of {found}")
            return parse_wheel_file(filename)
        except WheelError as error:
            raise RejectedError("bad-name", error.message) from error

    def _entry(
        self, wheel: WheelFile, url: str, hashes: Mapping[str, str], claim: str | bool | None
    ) -> Entry:
        """Return the entry of a URL with one more listing counted in, once its hashes are sound."""
        for algorithm, digest in hashes.items():
            if not (algorithm == "sha256" and SHA256.match(digest)):
                check_hex(algorithm, digest)
        if isinstance(claim, str) and not SHA256.match(claim):
            check_hex("sha256", claim)
            claim = claim.lower()
        entry = self.entries.get(url)
        if entry is None:
            entry = self.entries[url] = Entry(wheel=wheel, url=url)
        entry.add_claims(hashes.get("sha256", "").lower(), claim)
        return entry


def _no_wheel(filename: str) -> RejectedError:
    kind = "a link that names no file"
    if _ARCHIVE.search(filename):
        kind = "a source distribution or another kind of archive"
    return RejectedError("not-a-wheel", kind)


def _file_name(address: str) -> str:
    """Return the last segment of an address without query, decoded exactly once."""
    last = address.rpartition("/")[2]
    if "%" not in last:
        return last
    # A local version's plus sign is nearly always the only character that was encoded.
    return plain if "%" not in (plain := last.replace("%2B", "+")) else unquote(last)


def _is_folder(href: str | None) -> bool:
    return href is not None and _FOLDER.match(href.strip()) is not None


def _declares_itself(page: HtmlPage) -> bool:
    """Whether a page without files says of itself that it is an index's."""
    return "pypi:repository-version" in page.meta or any(
        _EMPTY_PAGE.match(heading) for heading in page.headings
    )
