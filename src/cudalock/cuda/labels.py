"""Local version labels: what the part after ``+`` in a wheel's version says.

PEP 440 leaves its meaning to the publisher. The forms read here are those that publishers of CUDA
wheels use: ``cu130``, ``cu12torch2.8cxx11abiTRUE``, ``gaa384b3c0.cu130``, ``pt28cu128``,
``cu.13.0.torch.2.11``, ``20260318.cu130torch2100cxx11abitrue.8afc61``. A label is read from left
to right as words, each of which must end where a word may end; what is no word is kept in
``unread`` and nothing is guessed from it. A label is a claim of the file's name: what the wheel
holds is for ``wheel`` to say.

Labels are never compared as text, where ``cu1210 < cu129`` and ``cu99 > cu130``: see ``rank``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias, TypeVar

from cudalock.cuda.arch import Architecture, ComputeCapability, parse_architecture
from cudalock.cuda.tables import Tables, shipped_tables
from cudalock.cuda.version import CudaVersion

__all__ = ["LocalLabel", "Rank", "Vendor", "parse_local_label", "rank"]

Vendor: TypeAlias = Literal["cuda", "cpu", "rocm", "xpu", "musa", "vulkan"]
Rank: TypeAlias = tuple[int, int, int]

# The longest label seen in 4,254 wheel names has 47 characters.
_LONGEST: Final = 200
_SEPARATOR: Final = re.compile(r"[._-]")

# A word ends with the label, at a separator, or where the next word is glued to it.
_END = r"(?=$|[._-]|torch|pt[0-9]|cu[0-9]|cxx11|sm[0-9]|avx|basic|git[0-9a-f]|andhigher)"
_DATE = r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_WORDS: Final = (
    # `d20260123` is how setuptools-scm marks a changed work tree.
    ("date", rf"d?(?P<date_>{_DATE})"),
    ("git", r"(?:git|g)(?P<git_>[0-9a-f]{6,40})"),
    # Without `g` a hash needs a digit and a letter: digits alone could be any number.
    ("hash", r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{6,40}"),
    (
        "torch",
        (
            r"(?:torch|pt)\.?(?:(?P<major>[1-9])\.(?P<minor>[0-9]{1,2})(?![0-9])"
            r"(?:\.(?P<patch>[0-9]{1,2})(?![0-9]))?"
            r"|(?P<digits>[1-9][0-9]{0,4})(?![0-9]|\.[0-9]{1,2}(?![0-9])))"
            r"(?:\.?(?P<dev>dev[0-9]{1,12})|(?P<pre>(?:rc|a|b)[0-9]{1,3}))?(?P<newer>andhigher)?"
        ),
    ),
    (
        "cuda",
        (
            r"cu(?:da)?(?:\.?(?P<cu_major>[1-9][0-9])\.(?P<cu_minor>[0-9]|[1-9][0-9])"
            r"|\.?(?P<cu>[1-9][0-9]{1,3}))"
        ),
    ),
    ("abi", r"cxx11\.?abi(?P<abi_>true|false|1|0)?"),
    ("sm", r"sm_?(?P<sm_>[2-9][0-9][af]?|[1-9][0-9]{2}[af]?)"),
    # A build for one GPU may be called by its name. Only names that are nothing else: `a16` is how
    # quantised formats write 16-bit activations.
    ("device", r"(?P<device_>g[bh][0-9]{2,3}|[abhv][0-9]{3})"),
    ("cpu", r"cpu"),
    ("xpu", r"xpu"),
    ("vulkan", r"vulkan"),
    ("musa", r"musa[0-9]{0,4}"),
    (
        "rocm",
        (
            r"rocm(?:sdk[0-9]{0,8}|[0-9]{1,4}(?:\.[0-9]{1,3}){0,3}(?:(?:a|b|rc)[0-9]{1,8})?)?"
            r"|gfx[0-9][0-9a-f]{2,3}"
        ),
    ),
    # The containers of NVIDIA are numbered by year and month, and packaging drops the month's 0.
    ("nvidia", r"cuda|nv[0-9]{2}\.[0-9]{1,2}"),
    # Words with a meaning that does not bear on what a wheel runs on.
    (
        "other",
        (
            r"avx(?:2|512)?|basic|lw|post[0-9]{1,4}|rc[0-9]{1,4}|pr\.?[0-9]{1,7}|cudnn[0-9]{0,4}"
            r"|with\.pypi\.cudnn"
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLabel:
    """A local version label, read.

    ``cuda`` is the release, if the label tells one; ``cuda_major`` is set for ``cu12`` too.
    ``torch`` is the release the label names, of two or three numbers (one for a bare ``torch2``);
    ``torch_pre`` its pre-release part (``dev20260610``), and ``torch_or_newer`` says the label
    allows newer ones (``andhigher``). ``sm`` is ascending, and holds that of a GPU called by its name
    (``gb300``). ``other`` holds words that were
    understood and do not bear on what a wheel runs on; ``unread`` what was not understood, and
    parts that contradict each other, as they were written.
    """

    text: str = ""
    cuda: CudaVersion | None = None
    cuda_major: int | None = None
    torch: tuple[int, ...] | None = None
    torch_pre: str | None = None
    torch_or_newer: bool = False
    cxx11abi: bool | None = None
    sm: tuple[Architecture, ...] = ()
    vendor: Vendor | None = None
    git: str | None = None
    date: str | None = None
    other: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def parse_local_label(text: str | None, *, tables: Tables | None = None) -> LocalLabel:
    """Read a label, with or without its capitals; ``None`` and ``""`` are an untagged version.

    Never raises: what cannot be read is in ``unread``, and that is all of a label of more than
    200 characters. ``tables`` say which torch releases have a two-digit minor.
    """
    if not text:
        return _UNTAGGED
    if tables is None:
        return _parse_shipped(text)
    return _parse(text, tables)


def rank(label: LocalLabel, *, newest: CudaVersion) -> Rank:
    """Return a sort key, nearest first, for a target whose newest admissible release is ``newest``.

    The newest release not above ``newest``, then the lowest above, then a major alone (of the
    same major first), then labels without CUDA, then those of another vendor. By number, never by
    text; labels that name the same CUDA share a rank.
    """
    if label.vendor not in (None, "cuda"):
        return (4, 0, 0)
    if label.cuda is not None:
        if label.cuda <= newest:
            return (0, -label.cuda.major, -label.cuda.minor)
        return (1, label.cuda.major, label.cuda.minor)
    if label.cuda_major is not None:
        above = label.cuda_major > newest.major
        return (2, int(above), label.cuda_major if above else -label.cuda_major)
    return (3, 0, 0)


_UNTAGGED: Final = LocalLabel()


_Value = TypeVar("_Value")
_Claims: TypeAlias = list[tuple[_Value, str]]


@cache
def _word() -> re.Pattern[str]:
    words = "|".join(f"(?P<{name}>(?:{pattern}){_END})" for name, pattern in _WORDS)
    return re.compile(words)


@lru_cache(maxsize=4096)
def _parse_shipped(text: str) -> LocalLabel:
    return _parse(text, shipped_tables())


def _parse(text: str, tables: Tables) -> LocalLabel:
    if len(text) > _LONGEST or not text.isascii():
        return LocalLabel(text=text, unread=(text,))
    words, unread = _split(text)
    reading = _Reading(unread=unread, tables=tables)
    for word, written in words:
        reading.take(word, written)
    return reading.label(text)


@lru_cache(maxsize=4)
def _devices(tables: Tables) -> Mapping[str, ComputeCapability]:
    """Map the names of GPUs that are one word to their capabilities."""
    return {
        name.lower(): capability for capability, names in tables.devices.items() for name in names
    }


def _split(text: str) -> tuple[list[tuple[re.Match[str], str]], list[str]]:
    """Find the words of a label, and the stretches between them that hold none."""
    words: list[tuple[re.Match[str], str]] = []
    unread: list[tuple[int, int]] = []
    lowered = text.lower()
    position = 0
    while position < len(text):
        if lowered[position] in "._-":
            position += 1
            continue
        match = _word().match(lowered, position)
        if match is not None:
            words.append((match, text[position : match.end()]))
            position = match.end()
            continue
        # A word never starts inside another: the whole part up to a separator stays unread.
        end = _SEPARATOR.search(lowered, position)
        stop = len(text) if end is None else end.start()
        if unread and unread[-1][1] + 1 == position:
            unread[-1] = (unread[-1][0], stop)
        else:
            unread.append((position, stop))
        position = stop
    return words, [text[start:stop] for start, stop in unread]


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What the words read so far claim; each claim keeps its spelling, in case it is disputed."""

    unread: list[str]
    tables: Tables
    cuda: _Claims[tuple[int, int | None]] = field(default_factory=list)
    torch: _Claims[tuple[tuple[int, ...] | str, str | None, bool]] = field(default_factory=list)
    abi: _Claims[bool] = field(default_factory=list)
    vendor: _Claims[Vendor] = field(default_factory=list)
    git: _Claims[str] = field(default_factory=list)
    date: _Claims[str] = field(default_factory=list)
    sm: set[Architecture] = field(default_factory=set)
    other: list[str] = field(default_factory=list)

    def take(self, word: re.Match[str], written: str) -> None:
        match word.lastgroup:
            case "date":
                self.date.append((word["date_"], written))
            case "git":
                self.git.append((word["git_"], written))
            case "hash":
                self.git.append((word["hash"], written))
            case "torch":
                self._take_torch(word, written)
            case "cuda":
                self._take_cuda(word, written)
            case "abi":
                self.abi.append((word["abi_"] not in ("false", "0"), written))
            case "sm":
                self.sm.add(parse_architecture(word["sm_"]))
                self.vendor.append(("cuda", written))
            case "device" if (found := _devices(self.tables).get(word["device_"])) is not None:
                self.sm.add(Architecture(found.number))
                self.vendor.append(("cuda", written))
            case "device":
                self.unread.append(written)
            case "cpu" | "xpu" | "musa" | "rocm" | "vulkan" as vendor:
                self.vendor.append((vendor, written))
            case "nvidia":
                self.vendor.append(("cuda", written))
            case _:
                self.other.append(written)

    def _take_torch(self, word: re.Match[str], written: str) -> None:
        prefix = "pt" if written[0] in "pP" else ""
        release: tuple[int, ...] | str = f"{prefix}{word['digits']}"
        if word["major"] is not None:
            parts = (word["major"], word["minor"], word["patch"])
            release = tuple(int(part) for part in parts if part is not None)
        newer = word["newer"] is not None
        self.torch.append(((release, word["dev"] or word["pre"], newer), written))

    def _take_cuda(self, word: re.Match[str], written: str) -> None:
        release = (
            _cuda_of_digits(word["cu"], self.tables)
            if word["cu"] is not None
            else (int(word["cu_major"]), int(word["cu_minor"]))
        )
        if release is None or release[0] > self.tables.newest_two_digit_major:
            self.unread.append(written)
            return
        self.cuda.append((release, written))
        self.vendor.append(("cuda", written))

    def label(self, text: str) -> LocalLabel:
        vendor = self._agreed(self.vendor)
        if vendor is None:
            # Two vendors: neither is believed, nor is what either says of itself.
            self.cuda.clear()
            self.sm.clear()
        cuda_major, cuda_minor = self._agreed(_most_precise(self.cuda)) or (None, None)
        release, pre, newer = self._agreed(self.torch) or (None, None, False)
        if isinstance(release, str):
            release = _torch_of_digits(release, cuda_major, cuda_minor, self.tables)
            if release is None:
                self.unread.extend(written for _, written in self.torch)
                pre, newer = None, False
        return LocalLabel(
            text=text,
            cuda=(
                None
                if cuda_major is None or cuda_minor is None
                else CudaVersion(cuda_major, cuda_minor)
            ),
            cuda_major=cuda_major,
            torch=release,
            torch_pre=pre,
            torch_or_newer=newer,
            cxx11abi=self._agreed(self.abi),
            sm=tuple(sorted(self.sm)),
            vendor=vendor,
            git=self._agreed(self.git),
            date=self._agreed(self.date),
            other=tuple(self.other),
            unread=tuple(dict.fromkeys(self.unread)),
        )

    def _agreed(self, claims: _Claims[_Value]) -> _Value | None:
        """Return what all claims say; if they differ, none is believed and all stay unread."""
        values = {value for value, _ in claims}
        if len(values) == 1:
            return values.pop()
        self.unread.extend(written for _, written in claims)
        return None


def _most_precise(
    claims: _Claims[tuple[int, int | None]],
) -> _Claims[tuple[int, int | None]]:
    """Without the bare majors that a release among the claims repeats (``cu12.cu128``)."""
    released = {major for (major, minor), _ in claims if minor is not None}
    return [
        ((major, minor), written)
        for (major, minor), written in claims
        if minor is not None or major not in released
    ]


def _cuda_of_digits(digits: str, tables: Tables) -> tuple[int, int | None] | None:
    """Read the digits after ``cu``: ``12`` is a major, ``128`` 12.8, ``1210`` 12.10.

    Two digits above the majors are the releases of a one-digit major that wheels were built with;
    any other is not read.
    """
    if len(digits) == 2:
        if int(digits) in tables.releases_of_two_digits:
            return int(digits[0]), int(digits[1])
        return int(digits), None
    minor = digits[2:]
    return None if len(minor) == 2 and minor[0] == "0" else (int(digits[:2]), int(minor))


def _torch_of_digits(
    word: str, cuda_major: int | None, cuda_minor: int | None, tables: Tables
) -> tuple[int, ...] | None:
    """Read a release without dots: ``27`` is 2.7, ``271`` 2.7.1, ``2100`` 2.10.0.

    ``210`` is 2.10 or 2.1.0. The CUDA of the same label tells which; without one, ``pt`` is
    followed by two numbers, as PyG writes it. Where neither tells, or where no reading is
    sensible, the answer is ``None``.
    """
    digits = word.removeprefix("pt")
    major, rest = int(digits[0]), digits[1:]
    if len(rest) < 2:
        return (major, int(rest)) if rest else (major,)
    minor = int(rest[:2])
    two_digits = 10 <= minor <= tables.newest_two_digit_minor
    if len(rest) == 3:
        return (major, minor, int(rest[2])) if two_digits else None
    if len(rest) > 3:
        return None
    one_digit = (major, int(rest[0]), int(rest[1]))
    if not two_digits:
        return one_digit
    oldest, newest = tables.two_digit_minor_from, tables.one_digit_minor_to
    if cuda_major is None:
        return (major, minor) if word.startswith("pt") else None
    least = CudaVersion(cuda_major, 0 if cuda_minor is None else cuda_minor)
    most = CudaVersion(cuda_major, 99 if cuda_minor is None else cuda_minor)
    if least >= oldest:
        return (major, minor)
    return one_digit if most <= newest else None
