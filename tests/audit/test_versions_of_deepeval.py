"""Two releases of DeepEval, the older one fetched from the package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.isolation import installed_version
from runner.audit.environments import found_uv
from runner.audit.versions import compare_versions
from runner.errors import ConfigError


@pytest.mark.slow
@pytest.mark.skipif(not found_uv(), reason="uv is neither on PATH nor beside python; pip takes minutes")
def test_the_prompt_that_changed_between_two_releases_of_deepeval(tmp_path: Path) -> None:
    """deepeval 4.2.6 showed its judge the JSON to write with doubled braces. Makes an environment of 420 MB."""
    try:
        result = compare_versions(
            ["deepeval==4.2.6", f"deepeval=={installed_version('deepeval')}"],
            ["deepeval/faithfulness", "deepeval/contextual_recall"],
            cache=tmp_path,
        )
    except ConfigError as error:
        if "cannot be installed" not in str(error):
            raise
        pytest.skip(f"the package index does not give deepeval 4.2.6: {error}")
    faithfulness, recall = result.changes
    assert list(faithfulness.prompts) == ["verdicts"]
    # Eight braces stand in the example of three verdicts.
    assert (faithfulness.prompts["verdicts"].added, faithfulness.prompts["verdicts"].removed) == (8, 8)
    assert faithfulness.arguments == {}
    assert recall.prompts == {}
