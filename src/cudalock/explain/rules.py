"""Rule codes: a stable code for every kind of fact, warning and error, and a page of help on each.

`RULES` is the one table. A word is what the rest of the code calls the thing: the code of a
`SetWarning`, the code of an error, the kind of a rejection, or the kind of a fact (`fact_word`). A
new kind needs a word here and a page ``pages/CODE.md``; `tests/explain/test_rules.py` says which
are missing. Codes are for ever: one that is given up is not given again.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from cudalock.resolver.facts import Fact, FactKind

__all__ = ["RULES", "Rule", "fact_rule", "fact_word", "find_rule", "package_word", "rule_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: its code, and the words it goes by, of which the first is its name."""

    code: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first word."""
        return self.words[0]

    @property
    def page(self) -> str:
        """The page of help, Markdown; read from the package."""
        return _read_page(self.code)

    @property
    def title(self) -> str:
        """What the rule is about, in one line: the heading of its page without the code."""
        return self.page.partition("\n")[0].removeprefix(f"# {self.code}: ")

    @property
    def summary(self) -> str:
        """What the rule says: the first paragraph of its page, as one line."""
        return " ".join(self.page.split("\n\n")[1].split())


@cache
def _read_page(code: str) -> str:
    return files(__package__).joinpath("pages", f"{code}.md").read_text(encoding="utf-8")


# 1xx: what is asked for, and what releases say of themselves. 2xx: CUDA and the machine.
# 3xx: wheels beside each other. 4xx: indices and files. 5xx: a command that gave no lock.
_WORDS: dict[str, tuple[str, ...]] = {
    "CUDA101": ("requirement",),
    "CUDA102": ("constraint",),
    "CUDA103": ("override",),
    "CUDA104": ("dependency",),
    "CUDA105": ("pre-release",),
    "CUDA106": ("later", "as-of"),
    "CUDA107": ("undated",),
    "CUDA108": ("yanked",),
    "CUDA109": ("placeholder",),
    "CUDA110": ("requires-python",),
    "CUDA111": ("python",),
    "CUDA112": ("platform",),
    "CUDA113": ("glibc",),
    "CUDA114": ("missing-extra",),
    "CUDA115": ("held-back",),
    "CUDA116": ("input",),
    "CUDA117": ("variant", "variant-passed-over", "variant-locked"),
    "CUDA118": ("variant-unfit",),
    "CUDA119": ("variant-unknown", "variants-unread"),
    "CUDA120": ("rejection",),
    "CUDA121": ("override-extra",),
    "CUDA200": ("target", "policy", "demand"),
    "CUDA201": ("cuda-runtime",),
    "CUDA202": ("cuda-release",),
    "CUDA203": ("unknown-cuda",),
    "CUDA204": ("driver",),
    "CUDA205": ("gpu",),
    "CUDA206": ("gpu-in-part",),
    "CUDA207": ("ptx-only",),
    "CUDA208": ("cuda-toolkit",),
    "CUDA209": ("other-minor",),
    "CUDA210": ("newer-minor",),
    "CUDA211": ("major-only",),
    "CUDA212": ("cuda-any",),
    "CUDA213": ("cpu",),
    "CUDA214": ("other-vendor", "rocm", "xpu", "musa", "vulkan"),
    "CUDA215": ("evidence-disagrees",),
    "CUDA216": ("unread-label",),
    "CUDA217": ("compiler-too-old",),
    "CUDA218": ("sorts-above",),
    "CUDA301": ("pairing",),
    "CUDA302": ("label-pairing",),
    "CUDA303": ("release",),
    "CUDA304": ("unpaired",),
    "CUDA305": ("family",),
    "CUDA306": ("train", "aligned-by-day", "other-day"),
    "CUDA307": ("cxx-abi",),
    "CUDA308": ("symbol", "torch-symbols"),
    "CUDA309": ("path", "path-clash"),
    "CUDA310": ("nightly-older",),
    "CUDA311": ("nightly-expires",),
    "CUDA312": ("undeclared-library",),
    "CUDA401": ("unlisted", "incomplete"),
    "CUDA402": ("no-metadata", "unknown", "unreadable"),
    "CUDA403": ("assumed-metadata",),
    "CUDA404": ("absent",),
    "CUDA405": ("index",),
    "CUDA406": ("unpublished",),
    "CUDA407": ("quarantined", "project-status"),
    "CUDA408": ("bad-file", "bad-hash", "bad-url", "bad-name", "other-project"),
    "CUDA409": ("hash", "hash-open"),
    "CUDA410": ("hash-conflict", "hash-mismatch"),
    "CUDA411": ("same-name",),
    "CUDA412": ("two-builds",),
    "CUDA413": ("squatted",),
    "CUDA501": ("no-solution",),
    "CUDA502": ("stopped", "resolution", "error"),
    "CUDA503": ("usage", "project-file", "data-file"),
    "CUDA504": ("index-access", "http-status", "transport", "body", "redirect", "range"),
    "CUDA505": ("offline",),
    "CUDA506": ("not-a-page",),
    "CUDA507": ("wheel",),
    "CUDA508": ("host",),
    "CUDA509": ("missing-hash",),
    "CUDA510": ("lock", "invalid-lock", "unwritable-lock", "lock-write", "lock-changed"),
    "CUDA511": ("lock-mismatch",),
}

RULES: tuple[Rule, ...] = tuple(Rule(code=code, words=words) for code, words in _WORDS.items())
"""Every rule, by code."""

_BY_WORD = {word: rule for rule in RULES for word in (rule.code.lower(), *rule.words)}

# Virtual packages by their names, or by how a name of several begins or ends.
_PACKAGES = {
    "<driver>": "driver",
    "<cuda-runtime>": "cuda-runtime",
    "<cuda>": "cuda-release",
    "<cuda-toolkit>": "cuda-toolkit",
}
_BEGINNINGS = {"<gpu ": "gpu", "<path ": "path", "<lib": "torch-symbols"}
_ENDINGS = {" C++ ABI>": "cxx-abi", " nightly>": "train"}


def rule_of(word: str) -> Rule | None:
    """Return the rule of a word (a warning's code, an error's, a kind) or a code, if it has one."""
    return _BY_WORD.get(word.lower())


def find_rule(asked: str) -> Rule | None:
    """Return the rule that a person means: a code, its number alone, or a word in any spelling."""
    word = asked.strip().lower().replace("_", "-").replace(" ", "-")
    return rule_of(word) or rule_of(f"cuda{word}")


def fact_rule(fact: Fact) -> Rule:
    """Return the rule of a fact: that of what it is about, else that of its kind."""
    return rule_of(fact_word(fact)) or _BY_WORD[fact.kind.word]


def fact_word(fact: Fact) -> str:
    """Return the finest word for a fact: of a rejection its reason, of a demand what is demanded."""
    match fact.kind:
        case FactKind.REJECTION | FactKind.UNKNOWN | FactKind.INCOMPLETE:
            # `glibc 2.28` is one of many of its kind.
            return fact.object.partition(" ")[0]
        case FactKind.TARGET | FactKind.POLICY:
            return package_word(fact.subject) or fact.kind.word
        case FactKind.PAIRING if fact.source.startswith("label +"):
            return "label-pairing"
        case FactKind.FAMILY if package_word(fact.object) == "train":
            return "train"
        case FactKind.DEMAND:
            return package_word(fact.object) or fact.kind.word
        case _:
            return fact.kind.word


def package_word(package: str) -> str | None:
    """Return the word for a virtual package: ``gpu`` for ``<gpu 12.0>``; None for a family's."""
    if package in _PACKAGES:
        return _PACKAGES[package]
    for beginning, word in _BEGINNINGS.items():
        if package.startswith(beginning):
            return word
    return next((word for end, word in _ENDINGS.items() if package.endswith(end)), None)
