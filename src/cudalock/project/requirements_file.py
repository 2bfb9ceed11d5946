r"""Requirements files, as pip and uv read them, as far as locking needs them.

The format is pip's ("Requirements File Format" in pip's reference): one requirement a line,
``#`` comments, ``\`` continuations, ``-r`` and ``-c``, index options, ``--hash``. What asks for
a build (``-e``, paths, archives) is refused in words, because cudalock locks wheels only; options
that cannot change which wheel is chosen are read and named in ``warnings``.

`parse_requirements` is pure. `read_requirements` opens the file and what it includes.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cudalock.errors import UsageError
from cudalock.project.index_url import IndexUrl, parse_index_url, redact
from cudalock.project.requirement import RequestedRequirement, near_name, parse_requirement

__all__ = [
    "FileReference",
    "RequirementsFile",
    "parse_requirements",
    "read_requirements",
]

_LARGEST_FILE = 4 << 20
_LONGEST_LINE = 1 << 16
_MOST_LINES = 100_000
_DEEPEST_INCLUDE = 16
_MOST_FILES = 256

_HEX_LENGTH = {"sha256": 64, "sha384": 96, "sha512": 128}
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]{1,200})\}")
_WORD = re.compile(r"\S+")

# pip's options, by what we do with them.
_WITH_VALUE = {
    "-r": "requirement",
    "--requirement": "requirement",
    "-c": "constraint",
    "--constraint": "constraint",
    "-i": "index-url",
    "--index-url": "index-url",
    "--pypi-url": "index-url",
    "--extra-index-url": "extra-index-url",
    "-f": "find-links",
    "--find-links": "find-links",
    "-e": "editable",
    "--editable": "editable",
    "--only-binary": "ignored",
    "--no-binary": "ignored",
    "--trusted-host": "ignored",
    "--use-feature": "ignored",
}
_ALONE = {
    "--no-index": "no-index",
    "--pre": "pre",
    "--require-hashes": "require-hashes",
    "--prefer-binary": "ignored",
}
_PER_REQUIREMENT_IGNORED = frozenset({"--config-settings", "--config-setting", "--global-option"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReference:
    """A file that another one includes with ``-r`` (``constraint`` false) or ``-c`` (true)."""

    path: str
    constraint: bool
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsFile:
    """What a requirements file asks for, in the order it is written.

    ``references`` are the ``-r`` and ``-c`` lines: still to be read after `parse_requirements`,
    already followed after `read_requirements`. A ``find_links`` that is text is a folder.
    """

    requirements: tuple[RequestedRequirement, ...] = ()
    constraints: tuple[RequestedRequirement, ...] = ()
    references: tuple[FileReference, ...] = ()
    index_url: IndexUrl | None = None
    extra_index_urls: tuple[IndexUrl, ...] = ()
    find_links: tuple[IndexUrl | str, ...] = ()
    no_index: bool = False
    pre: bool = False
    require_hashes: bool = False
    warnings: tuple[str, ...] = ()


def parse_requirements(
    text: str,
    *,
    where: str,
    constraint: bool = False,
    environ: Mapping[str, str] | None = None,
) -> RequirementsFile:
    """Read the text of a requirements file named ``where``; linear in its length.

    With ``constraint`` the requirements are constraints. ``${NAME}`` is replaced from ``environ``
    where it holds the name, and left as it is otherwise, as pip does.

    Raises:
        UsageError: the first line that cannot be read; ``where`` of the error is ``file:line``.

    """
    if len(text) > _LARGEST_FILE:
        message = f"expected at most {_LARGEST_FILE} characters, found {len(text)}"
        raise UsageError(message, where=where)
    reader = _Reader(constraint=constraint)
    for number, line in _logical_lines(text, where=where):
        expanded = _expand(line, environ or {})
        reader.line(expanded, where=f"{where}:{number}")
    return reader.finish()


def read_requirements(
    path: Path,
    *,
    constraint: bool = False,
    environ: Mapping[str, str] | None = None,
) -> RequirementsFile:
    """Read a requirements file and every file it includes, relative to the including one.

    A file reached through ``-c`` gives constraints only. A file included twice is read once.

    Raises:
        UsageError: a file cannot be read, includes itself, or the includes are too deep or many.

    """
    total = RequirementsFile()
    seen: set[tuple[Path, bool]] = set()
    # Each entry is a file still to be read and the chain of files that led to it; the last one is
    # read next, and what it includes is put on top, so files come in the order pip reads them.
    pending: list[tuple[Path, bool, tuple[Path, ...], str | None]] = [(path, constraint, (), None)]
    while pending:
        current, as_constraint, chain, where = pending.pop()
        key = _resolve(current, where=where)
        if key in chain:
            raise UsageError(f"expected no cycle of includes, found `{current}` again", where=where)
        if (key, as_constraint) in seen:
            continue
        if len(chain) >= _DEEPEST_INCLUDE or len(seen) >= _MOST_FILES:
            message = f"expected at most {_DEEPEST_INCLUDE} levels and {_MOST_FILES} included files"
            raise UsageError(message, where=where)
        seen.add((key, as_constraint))
        text = _read_text(current, where=where)
        parsed = parse_requirements(
            text, where=str(current), constraint=as_constraint, environ=environ
        )
        total = _join(total, parsed)
        pending.extend(
            (current.parent / ref.path, ref.constraint or as_constraint, (*chain, key), ref.where)
            for ref in reversed(parsed.references)
        )
    return total


def _resolve(path: Path, *, where: str | None) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        message = f"cannot follow `{redact(ascii(str(path))[1:-1])}`"
        raise UsageError(message, where=where) from error


def _read_text(path: Path, *, where: str | None) -> str:
    place = where or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "bad name"
        raise UsageError(f"cannot read `{path}`: {reason}", where=place) from error
    if len(data) > _LARGEST_FILE:
        raise UsageError(f"expected at most {_LARGEST_FILE} bytes in `{path}`", where=place)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"expected UTF-8 text in `{path}`, found byte {data[error.start]:#04x} at {error.start}",
            where=place,
        ) from error


def _join(first: RequirementsFile, second: RequirementsFile) -> RequirementsFile:
    return RequirementsFile(
        requirements=first.requirements + second.requirements,
        constraints=first.constraints + second.constraints,
        references=first.references + second.references,
        # As in pip, the last ``--index-url`` read is the one that holds.
        index_url=second.index_url or first.index_url,
        extra_index_urls=first.extra_index_urls + second.extra_index_urls,
        find_links=first.find_links + second.find_links,
        no_index=first.no_index or second.no_index,
        pre=first.pre or second.pre,
        require_hashes=first.require_hashes or second.require_hashes,
        warnings=first.warnings + second.warnings,
    )


def _logical_lines(text: str, *, where: str) -> Iterator[tuple[int, str]]:
    """Join continued lines and drop comments, as pip does; each comes with its first number.

    A comment line inside a continuation ends it: pip puts a space before such a line, so that its
    comment is then cut off.
    """
    parts: list[str] = []
    length = start = 0
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise UsageError(f"expected at most {_MOST_LINES} lines, found {len(lines)}", where=where)
    for number, line in enumerate(lines, 1):
        comment = line.lstrip().startswith("#")
        if not parts:
            start = number
        length += len(line)
        if length > _LONGEST_LINE:
            message = f"expected a line of at most {_LONGEST_LINE} characters"
            raise UsageError(message, where=f"{where}:{start}")
        if line.endswith("\\") and not comment:
            parts.append(line[:-1])
            continue
        parts.append(f" {line}" if comment else line)
        joined = _COMMENT.sub("", "".join(parts)).strip()
        parts, length = [], 0
        if joined:
            yield start, joined
    joined = _COMMENT.sub("", "".join(parts)).strip()
    if joined:
        yield start, joined


def _expand(line: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environ.get(found[1]) or found[0], line)


class _Reader:
    """Collects what the lines of one file say."""

    def __init__(self, *, constraint: bool) -> None:
        self._constraint = constraint
        self._requirements: list[RequestedRequirement] = []
        self._references: list[FileReference] = []
        self._extra: list[IndexUrl] = []
        self._links: list[IndexUrl | str] = []
        self._warnings: list[str] = []
        self._result = RequirementsFile()

    def finish(self) -> RequirementsFile:
        requirements = tuple(self._requirements)
        return replace(
            self._result,
            requirements=() if self._constraint else requirements,
            constraints=requirements if self._constraint else (),
            references=tuple(self._references),
            extra_index_urls=tuple(self._extra),
            find_links=tuple(self._links),
            warnings=tuple(self._warnings),
        )

    def line(self, line: str, *, where: str) -> None:
        if line.startswith("-"):
            self._options(line, where=where)
        else:
            self._requirement(line, where=where)

    def _requirement(self, line: str, *, where: str) -> None:
        text, options = _split_options(line)
        hashes: list[str] = []
        for name, value in _option_values(options, where=where):
            if name == "--hash":
                hashes.append(_parse_hash(value, where=where))
            elif name in _PER_REQUIREMENT_IGNORED:
                self._warnings.append(f"{where}: {name} is for building and is not used")
            else:
                known = {"--hash", *_PER_REQUIREMENT_IGNORED}
                message = f"`{name}` is no option of a requirement{near_name(name, known)}"
                raise UsageError(message, where=where)
        self._requirements.append(
            parse_requirement(text, where=where, hashes=tuple(sorted(set(hashes))))
        )

    def _options(self, line: str, *, where: str) -> None:
        words = iter(_shell_words(line, where=where))
        for word in words:
            name, value = _split_word(word)
            if name in _ALONE and value is None:
                self._alone(name, where=where)
            elif name in _WITH_VALUE:
                value = next(words, None) if value is None else value
                if not value:
                    raise UsageError(f"expected a value after `{name}`", where=where)
                self._with_value(name, value, where=where)
            else:
                shown = redact(name[:80])
                message = f"`{shown}` is no option of a requirements file"
                raise UsageError(message + near_name(name, {*_ALONE, *_WITH_VALUE}), where=where)

    def _alone(self, name: str, *, where: str) -> None:
        match _ALONE[name]:
            case "no-index":
                self._result = replace(self._result, no_index=True)
            case "pre":
                self._result = replace(self._result, pre=True)
            case "require-hashes":
                self._result = replace(self._result, require_hashes=True)
            case _:
                self._warnings.append(f"{where}: {name} changes nothing here and is not used")

    def _with_value(self, name: str, value: str, *, where: str) -> None:
        match _WITH_VALUE[name]:
            case "requirement" | "constraint" as kind:
                if re.match(r"[A-Za-z][A-Za-z0-9+.-]{1,19}:", value):
                    message = f"expected a file after `{name}`, found `{redact(value[:160])}`"
                    raise UsageError(f"{message}; download it first", where=where)
                self._references.append(
                    FileReference(path=value, constraint=kind == "constraint", where=where)
                )
            case "index-url":
                self._result = replace(self._result, index_url=parse_index_url(value, where=where))
            case "extra-index-url":
                self._extra.append(parse_index_url(value, where=where))
            case "find-links":
                remote = re.match(r"https?://", value, re.IGNORECASE)
                self._links.append(parse_index_url(value, where=where) if remote else value)
            case "editable":
                raise UsageError(
                    f"expected requirements on wheels, found `{name} {redact(value[:160])}`; "
                    "an editable project is built on the machine and cannot be locked",
                    where=where,
                )
            case _:
                self._warnings.append(f"{where}: {name} changes nothing here and is not used")


def _split_options(line: str) -> tuple[str, str]:
    """Cut a requirement line where its first option begins: a word that starts with ``-``."""
    for word in _WORD.finditer(line):
        if word[0].startswith("-"):
            return line[: word.start()].strip(), line[word.start() :]
    return line, ""


def _shell_words(text: str, *, where: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"cannot read the options: {error}", where=where) from error


def _split_word(word: str) -> tuple[str, str | None]:
    """Take ``--name=value`` and ``-rvalue`` apart."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return (word[:2], word[2:].removeprefix("=") or None) if word.startswith("-") else (word, None)


def _option_values(text: str, *, where: str) -> Iterator[tuple[str, str]]:
    words = iter(_shell_words(text, where=where))
    for word in words:
        name, value = _split_word(word)
        if not name.startswith("-"):
            raise UsageError(f"expected an option, found `{redact(name[:80])}`", where=where)
        value = next(words, "") if value is None else value
        yield name, value


def _parse_hash(text: str, *, where: str) -> str:
    """Read ``algorithm:hex``; algorithms that no longer resist collisions are refused."""
    algorithm, _, digest = text.partition(":")
    length = _HEX_LENGTH.get(algorithm.lower())
    if length is None:
        expected = ", ".join(f"`{name}:`" for name in _HEX_LENGTH)
        message = f"expected a hash that begins with {expected}, found `{text[:80]}`"
        raise UsageError(message, where=where)
    if len(digest) != length or not re.fullmatch(r"[0-9a-fA-F]+", digest):
        raise UsageError(
            f"expected {length} hexadecimal digits after `{algorithm}:`, "
            f"found `{digest[:140]}` ({len(digest)} characters)",
            where=where,
        )
    return f"{algorithm.lower()}:{digest.lower()}"
