"""`python -m regard.compare ORDER`: the worker that a comparison starts for each of its models."""

import sys

from regard.compare.worker import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
