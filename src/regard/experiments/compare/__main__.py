"""`python -m regard.experiments.compare ORDER`: the worker that a comparison starts for each of its models."""

import sys

from regard.experiments.compare.worker import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
