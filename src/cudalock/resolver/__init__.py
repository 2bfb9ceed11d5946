"""Which wheels together run on the target: candidates, solving, and minimal conflicts.

The room states what it needs from an index as the `Source` protocol and touches nothing outside
the process. Two searches share the data of a `World` and no code: `engine` (resolvelib) finds the
lock, `exhaustive` is the second opinion without which "no solution" is never said.
"""
