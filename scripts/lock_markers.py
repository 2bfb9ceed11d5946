"""Turns the dependencies that a ``uv.lock`` gives for a package back into plain requirements.

A lock of a project with conflicting extras encodes them into its markers as artificial extras
(``extra == 'extra-7-project-cu130'``, ``'group-7-project-dev'``). They describe the project that
was locked, not the package. A requirement of the package holds when some choice of those extras
that the project allows makes the lock's marker true, so the marker is read once with none of them
chosen and once with each one chosen alone, and what remains is joined. Pairs are never chosen:
the lock's clauses on two of them at once are about choices that the project forbids.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["clean_marker", "clean_requirements", "format_marker", "parse_edge", "split_marker"]

# An atom is (variable, operator, value); a term is a conjunction; a marker is a disjunction.
_Atom = tuple[str, str, str]
_Term = frozenset[_Atom]
_Terms = frozenset[_Term]

_TRUE: _Terms = frozenset({frozenset()})
_FALSE: _Terms = frozenset()
_ARTIFICIAL = re.compile(r"(?:extra|group|project)-\d+-")
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SWAPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_TERMS_LIMIT = 4096


@lru_cache(maxsize=8192)
def parse_edge(text: str) -> Requirement:
    """Parse one dependency of a lock; its markers may run to many thousand characters."""
    return Requirement(text)


def split_marker(text: str) -> _Terms:
    """Return a marker as a disjunction of terms."""
    # packaging has no public view of a marker's tree.
    return _read(Marker(text)._markers)  # noqa: SLF001 - see above


def _read(node: object) -> _Terms:
    if isinstance(node, tuple):
        left, operator, right = node
        name, op, value = str(left.value), str(operator.value), str(right.value)
        if op in ("in", "not in"):
            # `'tegra' in platform_release` says for which machine the locked project took this
            # index, not what the package requires there.
            return _TRUE
        if type(left).__name__ == "Value":
            name, op, value = value, _SWAPPED[op], name
        return frozenset({frozenset({(name, op, value)})})
    if not isinstance(node, list):
        raise TypeError(f"expected a marker, found {node!r}")
    # A list is terms and operators in turn; `and` binds more tightly than `or`.
    found: _Terms = _FALSE
    product: _Terms = _TRUE
    for item in node:
        if item == "or":
            found, product = found | product, _TRUE
        elif item != "and":
            parts = _read(item)
            product = frozenset(a | b for a in product for b in parts)
            if len(product) > _TERMS_LIMIT:
                raise ValueError("expected a marker of fewer terms")
    return found | product


@lru_cache(maxsize=4096)
def clean_marker(text: str) -> _Terms:
    """Return the marker without artificial extras, simplified. Real extras are kept."""
    terms = split_marker(text)
    chosen = {
        value
        for term in terms
        for name, _, value in term
        if name == "extra" and _ARTIFICIAL.match(value)
    }
    found: set[_Term] = set()
    for choice in (None, *sorted(chosen)):
        for term in terms:
            rest = _choose(term, choice)
            if rest is not None:
                found.add(rest)
    return _simplify(found)


def _choose(term: _Term, choice: str | None) -> _Term | None:
    """Return what a term says when only ``choice`` is chosen; None when it is false."""
    rest = set()
    for name, op, value in term:
        if name == "extra" and _ARTIFICIAL.match(value):
            if (value == choice) != (op == "=="):
                return None
        else:
            rest.add((name, op, value))
    return frozenset(rest)


def _negate(atom: _Atom) -> _Atom | None:
    name, op, value = atom
    return (name, _OPPOSITE[op], value) if op in _OPPOSITE else None


def _simplify(terms: Iterable[_Term]) -> _Terms:
    """Drop false and implied terms; ``a or (not a and b)`` becomes ``a or b``."""
    current = {term for term in terms if not any(_negate(atom) in term for atom in term)}
    changed = True
    while changed:
        changed = False
        for term in sorted(current, key=_term_key):
            if any(other < term for other in current):
                current.discard(term)
                changed = True
                continue
            for atom in sorted(term):
                negated = _negate(atom)
                rest = term - {atom}
                if negated is not None and any(
                    negated in other and other - {negated} <= rest for other in current
                ):
                    current.discard(term)
                    current.add(rest)
                    changed = True
                    break
    return frozenset(current)


def _term_key(term: _Term) -> tuple[int, list[_Atom]]:
    return len(term), sorted(term)


def format_marker(terms: _Terms) -> str:
    """Return the text of a marker; the empty text for one that is always true."""
    if frozenset() in terms:
        return ""
    shown = []
    for term in sorted(terms, key=_term_key):
        text = " and ".join(f"{name} {op} {value!r}" for name, op, value in sorted(term))
        shown.append(f"({text})" if len(term) > 1 and len(terms) > 1 else text)
    return " or ".join(shown)


def clean_requirements(texts: Sequence[str], pins: dict[str, str]) -> tuple[str, ...]:
    """Return the lock's dependencies as requirements: names, extras and real markers.

    A lock's versions are its own choice, not the package's requirement; only ``pins`` (specifier
    by normalised name) are written. Two edges to one project become one with both markers. What
    never holds is left out.
    """
    found: dict[tuple[str, tuple[str, ...]], set[_Term]] = {}
    for text in texts:
        requirement = parse_edge(text)
        key = (canonicalize_name(requirement.name), tuple(sorted(requirement.extras)))
        terms = _TRUE if requirement.marker is None else clean_marker(str(requirement.marker))
        found.setdefault(key, set()).update(terms)
    shown = []
    for (name, extras), collected in sorted(found.items()):
        simplified = _simplify(collected)
        if simplified:
            marker = format_marker(simplified)
            extra = f"[{','.join(extras)}]" if extras else ""
            shown.append(f"{name}{extra}{pins.get(name, '')}" + (f" ; {marker}" if marker else ""))
    return tuple(shown)
