"""``python -m cudalock``."""

import sys

from cudalock.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
