from __future__ import annotations

import json

from adapters.schema import Chunk, Dropped, JudgeCard, Question, Ranked, Record, Score, StageUsage, Verdict
from runner.tracking.spans import PREVIEW_LIMIT, Step, encoded, laid_out, preview, rationale, request
from tests.tracking.made_results import definition

QUESTION = Question("q1", "How long is the warranty?")
CHUNKS = [Chunk("warranty", start, start + 10, f"passage at {start}") for start in (0, 10, 20)]
RECORD = Record(
    "q1",
    asked_k=2,
    retrieved=tuple(Ranked(chunk, 1.0 - rank / 10, rank) for rank, chunk in enumerate(CHUNKS, 1)),
    reranked=tuple(Ranked(chunk, 1.0, rank) for rank, chunk in enumerate(CHUNKS[:2], 1)),
    context=(CHUNKS[0],),
    dropped=(Dropped(CHUNKS[1], "budget"),),
    prompt="Answer: How long is the warranty?",
    answer="Two years.",
    usage=(
        StageUsage("retrieve", 0.25),
        StageUsage("rerank", 0.5),
        StageUsage("assemble", 0.0),
        StageUsage("generate", 1.25, 40, 3),
    ),
)
JUDGE = JudgeCard("openai", "qwen")


def judged(key: str, value: float | None = 0.5, seconds: float = 1.0, **more: object) -> Score:
    status = {} if value is not None else {"status": "failed", "reason": "the reply is no JSON"}
    return Score("q1", key, "f", value, judge=JUDGE, seconds=seconds, **{**status, **more})  # type: ignore[arg-type]


def steps(step: Step) -> dict[str, Step]:
    """All steps by name."""
    found = {step.name: step}
    for inner in step.steps:
        found |= steps(inner)
    return found


def test_steps_follow_each_other_in_the_times_that_were_measured() -> None:
    root = laid_out(QUESTION, RECORD, [judged("ragas/faithfulness"), judged("trulens/groundedness", seconds=0.5)])
    times = {name: (step.start, step.end) for name, step in steps(root).items()}
    assert times == {
        "question": (0.0, 3.5),  # 0.25 + 0.5 + 0 + 1.25 = 2.0 of the system, then 1.0 + 0.5 of the judge
        "retrieve": (0.0, 0.25),
        "rerank": (0.25, 0.75),
        "assemble": (0.75, 0.75),
        "generate": (0.75, 2.0),
        "judge": (2.0, 3.5),
        "ragas/faithfulness": (2.0, 3.0),
        "trulens/groundedness": (3.0, 3.5),
    }


def test_each_step_has_what_it_was_given_and_what_it_made() -> None:
    found = steps(laid_out(QUESTION, RECORD, []))
    assert found["question"].inputs == {"question": "How long is the warranty?"}
    assert found["question"].outputs == "Two years."
    first, second, third = found["retrieve"].outputs
    assert first == {
        "page_content": "passage at 0",
        "metadata": {"doc_uri": "warranty", "chunk_id": "warranty[0:10]", "rank": 1, "score": 0.9},
        "id": "warranty[0:10]",
    }
    assert (second["metadata"]["rank"], third["id"]) == (2, "warranty[20:30]")
    assert [document["id"] for document in found["rerank"].outputs] == ["warranty[0:10]", "warranty[10:20]"]
    assert found["assemble"].outputs["dropped"] == [{"document": "warranty[10:20]", "reason": "budget"}]
    assert found["generate"].inputs == {"prompt": "Answer: How long is the warranty?"}
    assert found["generate"].outputs["answer"] == "Two years."
    assert found["generate"].attributes["mlflow.chat.tokenUsage"]["total_tokens"] == 43
    assert "judge" not in found


def test_a_record_of_nothing_has_all_its_steps_and_its_error() -> None:
    found = steps(laid_out(QUESTION, Record("q1", error="the endpoint is down"), []))
    assert list(found) == ["question", "retrieve", "rerank", "assemble", "generate"]
    assert found["question"].error == found["generate"].error == "the endpoint is down"
    assert found["retrieve"].error is None
    assert found["question"].end == 0.0


def test_a_system_of_ones_own_is_one_step_with_what_it_told() -> None:
    record = Record(
        "q1",
        retrieved=RECORD.retrieved[:1],
        reranked=RECORD.retrieved[:1],
        context=(CHUNKS[0],),
        answer="Two years.",
        usage=(StageUsage("answer", 2.0, 40, 3),),
    )
    found = steps(laid_out(QUESTION, record, [judged("a/b")]))
    assert list(found) == ["question", "answer", "retrieve", "assemble", "judge", "a/b"]
    assert (found["answer"].start, found["answer"].end, found["judge"].start) == (0.0, 2.0, 2.0)
    assert found["answer"].outputs["answer"] == "Two years."
    assert found["answer"].attributes["mlflow.chat.tokenUsage"]["total_tokens"] == 43
    assert [step.name for step in found["answer"].steps] == ["retrieve", "assemble"]
    silent = Record("q1", answer="Two years.", usage=(StageUsage("answer", 2.0),))
    assert list(steps(laid_out(QUESTION, silent, []))) == ["question", "answer"]


def test_a_judgement_shows_its_verdicts_and_why_it_failed() -> None:
    verdict = Verdict("The warranty is two years.", "1", "supported", "it says so")
    found = steps(laid_out(QUESTION, RECORD, [judged("a/b", evidence=(verdict,)), judged("a/c", None)]))
    assert found["a/b"].outputs["verdicts"][0]["unit"] == "The warranty is two years."
    assert found["a/b"].attributes["judge"] == "openai qwen"
    assert found["a/c"].error == "the reply is no JSON"


def test_the_input_of_a_question_holds_nothing_of_the_run() -> None:
    assert request(QUESTION) == {"question": "How long is the warranty?"}
    assert preview(QUESTION) == '{"question": "How long is the warranty?"}'


def test_long_questions_that_begin_alike_stay_two() -> None:
    one, two = (preview(Question("q", "x" * 1_500 + ending)) for ending in ("a", "b"))
    assert one != two
    assert len(one) == len(two) == PREVIEW_LIMIT
    exact = Question("q", "x" * (PREVIEW_LIMIT - len('{"question": ""}')))
    assert preview(exact) == json.dumps(request(exact))


def test_what_is_stored_is_free_of_secrets_and_of_lone_surrogates() -> None:
    text = encoded({"question": 'é "\ud800" http://bob:hunter2@host/x', "api_key": "sk-1"})
    assert json.loads(text) == {"question": 'é "\\ud800" http://[removed]@host/x', "api_key": "[removed]"}


def test_a_rationale_is_the_reason_then_each_claim_with_both_words() -> None:
    score = judged(
        "a/b",
        reason="1 of 2 claims",
        evidence=(
            Verdict("Two years.", "1", "supported", "the passage says so", 3),
            Verdict("On Mars.", "idk", "not_supported"),
            Verdict("As is.", "supported", "supported"),
        ),
    )
    assert rationale(score, definition("a/b")) == (
        "1 of 2 claims\n"
        "1. [1 (supported)] rank 3: Two years.\n"
        "   Reason: the passage says so\n"
        "2. [idk (not supported)] On Mars.\n"
        "3. [supported] As is."
    )


def test_a_rationale_of_several_samples_says_how_far_they_are_apart() -> None:
    score = judged("a/b", samples=3, samples_failed=1, spread=0.25, flaky=True)
    assert rationale(score, definition("a/b")) == (
        "Mean of 2 of 3 samples, standard deviation 0.250; flaky: a verdict flips between two samples."
    )


def test_a_score_without_words_is_explained_by_its_formula() -> None:
    plain = Score("q1", "labels/recall", "f", 0.5)
    assert rationale(plain, definition("labels/recall")) == "hits / labelled. A hit is: a labelled document."
