from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture(scope="session")
def shared_data():
    """A function from a path below ../shared to the file there; the test is skipped where the file is absent."""

    def find(path: str) -> Path:
        if not (SHARED / path).exists():
            pytest.skip(f"{SHARED / path} is absent: real data stays outside the repository")
        return SHARED / path

    return find
