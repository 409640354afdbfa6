"""`python -m runner`: what `paribus run` does, and with `-m` what `paribus sweep` does."""

import sys

from runner.cli import hydra_habit

if __name__ == "__main__":
    sys.exit(hydra_habit())
