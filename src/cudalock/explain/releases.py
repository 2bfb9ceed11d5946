"""Is there any CUDA release for which this works? Each known one is tried, and none is guessed.

A set for one release is often the set for the next, too: what an older one allows, a newer one of
its major allows as well. All the same each is solved, for a yes is a set and a no is a proof.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cudalock.cuda import CudaVersion
from cudalock.errors import CudalockError, IndexAccessError, ResolutionStoppedError, WheelError
from cudalock.explain.report import conflict_reason, conflict_rule
from cudalock.explain.rules import Rule, rule_of
from cudalock.host import Target, every_release
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution

__all__ = ["ReleaseAnswer", "try_releases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAnswer:
    """What came out for one release: ``packages`` of a yes, else why not, and by which rule."""

    cuda: CudaVersion
    answer: Literal["yes", "no", "unknown"]
    packages: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    rule: Rule | None = None


def try_releases(
    request: Request, target: Target, *, solve: Callable[[Request, Target], Resolution]
) -> Iterator[ReleaseAnswer]:
    """Yield an answer for each release that the driver of ``target`` runs, newest first.

    Costs a solve each. The policy of the target holds for each. Nothing for a target without CUDA.
    """
    for release in () if target.cpu else every_release(target):
        # Forward compatibility is for a release above the driver's, and none of these is.
        one = replace(target, cuda=release, cuda_any=False, compat=None)
        try:
            resolution = solve(request, one)
        except NoSolutionError as error:
            yield ReleaseAnswer(
                cuda=release,
                answer="no",
                reason=conflict_reason(error.conflict),
                rule=conflict_rule(error.conflict),
            )
        except (ResolutionStoppedError, IndexAccessError, WheelError) as error:
            yield _not_told(release, error)
        else:
            packages = tuple((p.project, str(p.version)) for p in resolution.packages)
            yield ReleaseAnswer(cuda=release, answer="yes", packages=packages)


def _not_told(release: CudaVersion, error: CudalockError) -> ReleaseAnswer:
    reason = str(error).removeprefix("could not tell whether a set exists: ")
    return ReleaseAnswer(cuda=release, answer="unknown", reason=reason, rule=rule_of(error.code))
