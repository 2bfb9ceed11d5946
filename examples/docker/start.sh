#!/bin/sh
# Asks the machine before anything is loaded: its driver, every GPU, glibc and Python against the lock. What it cannot run is
# said here, in a second, and not by the first kernel.
set -eu
cudalock check --here /service/pylock.blackwell.toml
PATH=/service/.venv/bin:$PATH exec "$@"
