"""The facts a conflict is made of.

A fact is one statement that can be set aside: "the user asks for this", "these releases require
that", "the target has that driver". Both the second search and the minimal conflict work on facts,
never on single wheels: `dependency` facts of many releases with the same text are one fact, and so
are the wheels of one project ruled out for one reason.
"""

from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["Fact", "FactKind"]


class FactKind(IntEnum):
    """Kinds of facts, in the order in which the minimal conflict tries to do without them.

    The first are the ones a person can do least about, so that what remains is what they asked
    for, what their machine is, and what publishers declare.
    """

    INCOMPLETE = 0
    UNKNOWN = 1
    REJECTION = 2
    POLICY = 3
    DEPENDENCY = 4
    DEMAND = 5
    FAMILY = 6
    PAIRING = 7
    PATH = 8
    SYMBOL = 9
    RELEASE = 10
    CONSTRAINT = 11
    OVERRIDE = 12
    TARGET = 13
    REQUIREMENT = 14

    @property
    def word(self) -> str:
        """The kind's name in machine output."""
        return self.name.lower()

    @property
    def proves_nothing(self) -> bool:
        """Whether a "no" that rests on such a fact is only "could not tell"."""
        return self in (FactKind.INCOMPLETE, FactKind.UNKNOWN)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Fact:
    """One statement, equal to another when it says the same of the same subject.

    ``subject`` is the project (or virtual package) the fact is about; ``detail`` what it says, in
    words that stand alone after the subject and its versions; ``object`` the project or virtual
    package it speaks of. ``source`` is where that is written: one place of several, so it takes no
    part in comparison.
    """

    kind: FactKind
    subject: str
    object: str
    detail: str
    source: str = field(compare=False)
