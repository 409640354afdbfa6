"""records=frozen: the contexts of an earlier run, and nothing but generation anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.schema import Record, from_json, to_json
from tests.spine.commands import Say


def records(folder: Path) -> list[Record]:
    return [from_json(Record, line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]


def store(folder: Path, changed: list[Record]) -> None:
    text = "".join(f"{to_json(record)}\n" for record in changed)
    (folder / "records.jsonl").write_text(text, encoding="utf-8")


def before_generation(record: Record) -> Record:
    usage = tuple(used for used in record.usage if used.stage != "generate")
    return replace(record, prompt=None, answer=None, citations=(), refused=None, error=None, usage=usage)


def test_only_generation_varies(say: Say, folder: Path) -> None:
    live = Path(say("run", "--json").json["folder"])
    log = folder / "asked.txt"
    said = say("run", "--json", "records=frozen", f"records.path={live}", "prompt=strict", f"generator.log={log}")
    assert said.code == 0, said.err
    # The retriever stub would have been asked again for another depth; here no stage before the prompt is looked at.
    assert {kind for kind, count in said.json["computed"].items() if count} == {"generate", "generate_one"}
    old, new = records(live), records(Path(said.json["folder"]))
    assert [*map(before_generation, new)] == [*map(before_generation, old)]
    assert all(one.prompt != other.prompt for one, other in zip(old, new, strict=True))
    assert len(log.read_text(encoding="utf-8").splitlines()) >= len(new)
    again = say("run", "--json", "records=frozen", f"records.path={live}", "prompt=strict", f"generator.log={log}")
    assert not any(again.json["computed"].values())
    assert again.json["means"] == said.json["means"]


def test_the_contexts_are_those_that_were_stored(say: Say) -> None:
    live = Path(say("run", "--json").json["folder"])
    stored = records(live)
    other = replace(stored[0].context[0], text="Bicycles are parked on the moon.")
    stored[0] = replace(stored[0], context=(other,))
    store(live, stored)
    said = say("run", "--json", "records=frozen", f"records.path={live}")
    assert "Bicycles are parked on the moon." in (records(Path(said.json["folder"]))[0].prompt or "")


def test_a_question_without_a_ranking_has_no_answer_again(say: Say) -> None:
    live = Path(say("run", "--json").json["folder"])
    stored = records(live)
    stored[1] = replace(stored[1], context=(), prompt="", answer=None, refused=None, error="no ranking")
    stored[2] = replace(stored[2], answer=None, refused=None, error="the model was away")
    store(live, stored)
    said = say("run", "--json", "records=frozen", f"records.path={live}")
    new = records(Path(said.json["folder"]))
    assert (new[1].error, new[1].answer) == ("no ranking", None)
    assert (new[2].error, new[2].answer is None) == (None, False)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("retriever.k=1",), "retriever.k=1 cannot vary with records=frozen: the contexts in "),
        (("chunker.size=90",), "chunker.size=90 cannot vary with records=frozen"),
        (
            ("reranker=shortest", "reranker.candidates=5"),
            "reranker._target_='spine_stubs.Shortest' cannot vary with records=frozen",
        ),
        (("dataset.limit=2",), "were stored on another test set (checksum "),
        (("records.path=null",), "records.path is missing"),
        (("records.path=nowhere",), "nowhere is no result folder"),
        (("records.frozen=false",), "is read with records=frozen only"),
        (("records.pth=x",), "records.pth is not a known key: did you mean records.path?"),
    ],
)
def test_what_would_not_be_frozen_is_refused(say: Say, overrides: tuple[str, ...], message: str) -> None:
    live = Path(say("run", "--json").json["folder"])
    said = say("run", "records=frozen", f"records.path={live}", *overrides)
    assert (said.code, message in said.err) == (2, True), said.err


def test_prompts_may_be_swept_on_frozen_contexts(say: Say) -> None:
    live = Path(say("run", "--json").json["folder"])
    said = say("sweep", "--json", "records=frozen", f"records.path={live}", "prompt=plain,strict,cited")
    assert [row["run"] for row in said.json["rows"]] == ["baseline", "prompt=strict", "prompt=cited"]
    said = say("sweep", "records=frozen", f"records.path={live}", "retriever.k=5,3")
    assert said.code == 2
    assert "retriever.k cannot be swept with records=frozen" in said.err


def test_a_sweep_of_what_is_frozen_is_refused_before_anything_runs(say: Say) -> None:
    live = say("run", "--json").json["folder"]
    frozen = ("records=frozen", f"records.path={live}")
    said = say("sweep", "--dry-run", *frozen, "retriever.k=1,2")
    assert (said.code, said.out) == (2, "")
    assert "retriever.k cannot be swept with records=frozen" in said.err
