"""Indices: pages, publishers' definitions, knowledge files, recordings, the cache and the client.

`client.py` and `transport.py` alone speak HTTP. `routing.py` says which index a project comes
from, `source.py` asks it. Which wheel is taken is the resolver's business; the two rooms do not
import each other.
"""
