"""Who lets in what is otherwise left out: pre-releases, nightly files, wheels by URL.

These are the rules by which asking for more allows more: an exact pin on a pre-release admits it,
and a URL is there for those who ask for it. The second search has to know everybody who may do
so before it may say that nobody does.
"""

from cudalock.resolver.candidates import Candidate
from cudalock.resolver.request import Edge

__all__ = ["Openings"]


class Openings:
    """What was met so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._early: dict[str, set[Candidate]] = {}
        self._nightly: dict[str, set[Candidate]] = {}
        self._urls: dict[str, dict[str, set[Candidate]]] = {}

    def note(self, edge: Edge, opener: Candidate | None) -> None:
        """Remember what an edge lets in, if it does; without ``opener`` it is the user's.

        No wheel lets its own project in.
        """
        if opener is not None and opener.project == edge.node:
            return
        who = set() if opener is None else {opener}
        if edge.pins_prerelease:
            self._early.setdefault(edge.node, set()).update(who)
        if edge.nightly:
            self._nightly.setdefault(edge.node, set()).update(who)
        if edge.url is not None:
            self._urls.setdefault(edge.node, {}).setdefault(edge.url, set()).update(who)

    def early(self, project: str) -> bool:
        """Whether anything lets pre-releases of a project in."""
        return project in self._early

    def nightly(self, project: str) -> bool:
        """Whether anything opens the nightly folders of a project's publisher."""
        return project in self._nightly

    def urls(self, project: str) -> list[str]:
        """Return the URLs by which anything asks for a project, sorted."""
        return sorted(self._urls.get(project, ()))

    def openers(self, candidate: Candidate) -> list[Candidate]:
        """Return the wheels that may let a candidate in, in order."""
        project = candidate.project
        if candidate.direct:
            return sorted(self._urls.get(project, {}).get(candidate.url, ()))
        return sorted(self._early.get(project, set()) | self._nightly.get(project, set()))
