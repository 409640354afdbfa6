from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner.run_log import (
    NAME_LIMIT,
    OWN_ASSESSMENTS,
    PREFIXES,
    assessment_name,
    definition_key,
    metric_name,
    safe_artifact_name,
)

TRICKY = st.lists(
    st.sampled_from(
        ["_", "_at_", "at", "@", "x", "_x", "_x5f_", "x2e", "/", ".", "..", "=", ":", "n", "delta", "é", "0"]
    ),
    max_size=12,
).map("".join)
KEYS = st.one_of(st.text(max_size=30), TRICKY)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("labels/recall@5", "labels/recall_at_5"),
        ("labels/recall@5.unit-document", "labels/recall_at_5.unit-document"),
        ("ndcg_at_10", "ndcg_x5f_at_10"),
        ("faithfulness(ragas)", "faithfulness_x28_ragas_x29_"),
        ("a:b", "a_x3a_b"),
        ("P=1", "P_x3d_1"),
        ("../../x", "_x2e_./_x2e_./x"),
        ("/a//b/", "_x2f_a/_x2f_b_x2f_"),
        ("delta/x", "delta_x2f_x"),
        ("deltas/x", "deltas/x"),
        ("", "_x_"),
    ],
)
def test_a_name_is_readable_where_it_can_be(key: str, name: str) -> None:
    assert metric_name(key) == name
    assert definition_key(name) == key


@given(KEYS)
@example("_at@")
@example("__at_")
@example("_x@")
@example("_x_at_")
@example("_at/")
@example("\ud800")
def test_every_name_reads_back(key: str) -> None:
    name = metric_name(key)
    if len(name) < NAME_LIMIT:
        assert definition_key(name) == key


@given(st.lists(TRICKY, min_size=2, max_size=40, unique=True))
def test_no_two_keys_share_a_name(keys: list[str]) -> None:
    assert len({metric_name(key) for key in keys}) == len(keys)


@given(st.lists(TRICKY | st.sampled_from(OWN_ASSESSMENTS) | st.text(max_size=5), min_size=2, max_size=40, unique=True))
@example(["a/b", "a:b", "a_x3a_b", "a_x3a_/b", "fault", "_x66_ault"])
@example(["\ud800", "\\ud800", "_xd800_"])
def test_no_two_keys_share_the_name_of_an_assessment(keys: list[str]) -> None:
    names = {assessment_name(key) for key in keys}
    assert len(names | {*OWN_ASSESSMENTS}) == len(keys) + len(OWN_ASSESSMENTS)
    assert not any("/" in name or not 0 < len(name.encode()) <= 750 for name in names)


@settings(deadline=None)  # the first example imports mlflow
@given(KEYS, st.sampled_from(["", *(f"{prefix}/" for prefix in PREFIXES), "paribus.definition."]))
def test_mlflow_accepts_every_name(key: str, prefix: str) -> None:
    from mlflow.utils.validation import _validate_metric, _validate_param, _validate_tag

    name = prefix + metric_name(key)
    _validate_metric(name, 0.5, 0, 0)
    _validate_param(name, "value")
    _validate_tag(name, "value")
    assert ":" not in name, "MLflow refuses it on Windows"


@given(KEYS)
def test_no_key_maps_to_a_name_that_tracking_makes(key: str) -> None:
    first, slash, _ = metric_name(key).partition("/")
    assert not (slash and first in PREFIXES)


def test_long_keys_keep_apart_and_say_that_they_cannot_be_read_back() -> None:
    one, two = metric_name("a" * 300 + "1"), metric_name("a" * 300 + "2")
    assert one != two
    assert len(one) == len(two) == NAME_LIMIT
    with pytest.raises(ValueError, match=r"results/summary\.json"):
        definition_key(one)
    assert definition_key(metric_name("a" * (NAME_LIMIT - 1))) == "a" * (NAME_LIMIT - 1)


AWKWARD = [
    "../../x",
    "/etc/x",
    "a/b",
    "a_b",
    "C:\\data\\a.txt",
    "C:/data/a.txt",
    "",
    ".",
    "..",
    "été",
    "q\x00",
    "a" * 999,
]


def test_awkward_ids_become_distinct_files_inside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    for id in AWKWARD:
        (folder / f"{safe_artifact_name(id)}.txt").write_text(id, encoding="utf-8")
    assert len(list(folder.iterdir())) == len(AWKWARD)
    assert list(folder.parent.iterdir()) == [folder]


@given(KEYS)
def test_every_file_name_reads_back(id: str) -> None:
    name = safe_artifact_name(id)
    assert name.isascii()
    assert not set(name) & set('/\\:*?"<>| ')
    if len(name) < NAME_LIMIT:
        assert definition_key(name) == id
