from __future__ import annotations

from pathlib import Path

import pytest

from tests.spine import conftest as spine
from tests.spine.conftest import folder as folder
from tests.spine.conftest import say as say


@pytest.fixture(autouse=True)
def stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The components of the spine's tests, by the name that its YAML has for them."""
    monkeypatch.syspath_prepend(Path(spine.__file__).parent)
