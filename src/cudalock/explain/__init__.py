"""A conflict in words, and remedies that were tried.

What is said comes from `resolver/`; nothing is decided here and nothing is asked of an index. The
layout of an explanation: the machine, the chain, the remedy.
"""

from cudalock.explain.remedies import Remedy, find_remedies
from cudalock.explain.report import format_conflict, format_fact, format_target

__all__ = ["Remedy", "find_remedies", "format_conflict", "format_fact", "format_target"]
