"""The router example through the frameworks' own code: parts go where the change was made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random as Draw
from typing import Any, ClassVar

import pytest

from adapters.base import JudgedScorer
from adapters.judge import Call, Reply
from adapters.judges.labels import LabelsJudge
from adapters.judges.lexical import LexicalJudge
from adapters.judges.tasked import TaskJudge
from adapters.labels.ranking import Success
from adapters.schema import JudgeCard
from adapters.tasks import Attribute, Finding, Findings, Relevance, RelevantStatements, Split, Support, Task, Word
from runner.audit import scored
from runner.audit.comparison import audit
from runner.audit.findings import Group, Pair
from runner.audit.material import Material
from runner.audit.parts import Evidence, applied
from runner.audit.scored import measured, scorers
from runner.definitions import catalogue
from runner.errors import ConfigError
from tests.adapters.router import QUESTION, record

SPECS: list[Any] = [
    "ragas/faithfulness",
    "deepeval/faithfulness",
    {"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True},
    {"id": "trulens/groundedness", "splitter": "llm"},
]
RAGAS, DEEPEVAL = "ragas/faithfulness", "deepeval/faithfulness"


class Scripted(LabelsJudge):
    """People's verdicts, with the replies of one call of DeepEval's faithfulness changed."""

    change: Callable[[dict[str, Any]], dict[str, Any]]
    of: str

    async def ask(self, call: Call) -> Reply:
        """What people said, changed."""
        reply = await super().ask(call)
        if call.definition == DEEPEVAL and call.name == self.of:
            return Reply(json.dumps(self.change(json.loads(reply.text))))
        return reply


def found(judge: LabelsJudge) -> Group:
    material = Material("router", (QUESTION,), (record(),))
    scored = measured(scorers(SPECS), judge, material)
    return audit(scored.subjects, [QUESTION], [record()], scored.scores, source="router").groups[0]


def pair(group: Group) -> Pair:
    return next(pair for pair in group.pairs if (pair.left, pair.right) == (RAGAS, DEEPEVAL))


@pytest.fixture(scope="module")
def people() -> Group:
    return found(LabelsJudge())


def test_the_frameworks_say_60_80_60_60_and_the_formula_is_all_of_it(people: Group) -> None:
    assert [row.mean for row in people.rows] == pytest.approx([0.6, 0.8, 0.6, 0.6])
    why = pair(people).why
    assert why is not None
    assert (why.claims, why.verdicts) == (0.0, 0.0)
    assert why.formula == pytest.approx(-0.2)


def test_each_formula_on_its_own_verdicts_gives_the_frameworks_score(people: Group) -> None:
    (cross,) = people.crosses
    assert len(cross.sources) == len(cross.formulas) == 4
    for place, row in enumerate(people.rows):
        assert cross.cells[place][place] == pytest.approx(row.mean, abs=1e-9)
    assert people.hazards == ()


def test_a_verdict_that_the_judge_flips_is_the_part_of_verdicts() -> None:
    def flipped(reply: dict[str, Any]) -> dict[str, Any]:
        reply["verdicts"][0]["verdict"] = "no"
        return reply

    group = found(Scripted(change=flipped, of="verdicts"))
    # DeepEval: yes yes yes no borderline -> no yes yes no borderline = 3/5. Ragas stays at 3/5.
    assert group.rows[1].mean == pytest.approx(0.6)
    why = pair(group).why
    assert why is not None
    assert why.claims == 0.0
    assert why.verdicts == pytest.approx(0.2)
    assert why.formula == pytest.approx(-0.2)


def test_claims_that_the_judge_merges_are_the_part_of_the_claims() -> None:
    def merged(reply: dict[str, Any]) -> dict[str, Any]:
        first, second, *rest = reply["claims"]
        return {"claims": [f"{first.rstrip('.')}, and {second[0].lower()}{second[1:]}", *rest]}

    class Believing(Scripted):
        async def ask(self, call: Call) -> Reply:
            """The verdict on the merged claim is that on its halves."""
            if call.definition == DEEPEVAL and call.name == "verdicts":
                # The merged claim holds, as both of its halves do; the three others as people said.
                words = ("yes", "yes", "no", "borderline")
                return Reply(json.dumps({"verdicts": [{"verdict": word, "reason": None} for word in words]}))
            return await super().ask(call)

    group = found(Believing(change=merged, of="claims"))
    # DeepEval: 3 of 4. Ragas: 3 of 5.
    assert group.rows[1].mean == pytest.approx(0.75)
    why = pair(group).why
    assert why is not None
    assert (why.matched, why.only_left, why.only_right) == (3, 2, 1)
    assert why.verdicts == 0.0
    # On Ragas's claims DeepEval's formula gives 4/5, on its own 3/4; Ragas's gives 3/5 and 2/4 (yes yes no borderline).
    # formula = (3/5 - 4/5 + 2/4 - 3/4) / 2, claims = (3/5 - 2/4 + 4/5 - 3/4) / 2.
    assert why.formula == pytest.approx(-0.225)
    assert why.claims == pytest.approx(0.075)
    assert why.claims + why.verdicts + why.formula == pytest.approx(0.6 - 0.75)


def test_a_record_without_context_shows_what_the_framework_itself_would_say() -> None:
    bare = replace(record(), context=(), reranked=(), retrieved=())
    scored = measured(scorers([RAGAS, DEEPEVAL]), LexicalJudge(), Material("router", (QUESTION,), (bare,)))
    group = audit(scored.subjects, [QUESTION], [bare], scored.scores, source="router").groups[0]
    # Ragas raises; DeepEval judges the claims against no truths, and none is contradicted.
    assert [(hazard.definition, hazard.native) for hazard in group.hazards] == [(RAGAS, None), (DEEPEVAL, (1.0, 1.0))]
    assert [row.mean for row in group.rows] == [None, None]


def test_one_record_for_each_reason_shows_what_the_framework_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors differ from record to record; the question that is asked about them does not."""
    records = [replace(record(), question_id=f"q{n}", answer=None, error=f"timeout {n}") for n in range(5)]
    questions = [replace(QUESTION, id=each.question_id) for each in records]
    asked: list[Any] = []
    monkeypatch.setattr(scored, "unguarded", lambda jobs, *rest: asked.extend(jobs) or [None] * len(jobs))
    measured(scorers([RAGAS, DEEPEVAL]), LexicalJudge(), Material("x", tuple(questions), tuple(records)))
    assert [(job[0].key, job[2].question_id) for job in asked] == [(RAGAS, "q0"), (DEEPEVAL, "q0")]


def test_a_range_without_width_is_refused_before_anything_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Flat(Success):
        value_range: ClassVar[tuple[float, float]] = (1.0, 1.0)

    monkeypatch.setattr(JudgedScorer, "measure", lambda *arguments: pytest.fail("it was judged"))
    with pytest.raises(ConfigError, match="labels/success has the range 1 to 1, in which nothing can be compared"):
        measured([*scorers([RAGAS]), Flat()], LabelsJudge(), Material("x", (QUESTION,), (record(),)))


UNITS = (
    "It rains.",
    "it rains",
    "It has 3 doors.",
    'It\'s "quoted", {so} \\ [far].',
    "Δέλτα είναι εδώ.",
    "x",
    "雨です。",
)
"""Two of them are one unit in other letters."""
WORDS: dict[type[Any], tuple[Word, ...]] = {
    Support: ("supported", "contradicted", "absent"),
    Attribute: ("attributed", "not_attributed"),
    Relevance: ("relevant", "not_relevant"),
    RelevantStatements: ("relevant", "not_relevant"),
}


class Random(TaskJudge):
    """Cuts and judges by chance; grades of TruLens and DeepEval's third word come too."""

    seed: int

    @property
    def card(self) -> JudgeCard:
        """Names the seed."""
        return JudgeCard("random", "units", seed=self.seed)

    def findings(self, task: Task, call: Call) -> Findings:
        """Some units, and for each a word of the task."""
        draw = Draw(f"{self.seed} {call.key}")
        if isinstance(task, Support):
            units: Sequence[str] = task.units
        elif isinstance(task, Relevance):
            units = task.passages
        elif isinstance(task, Split):
            return tuple(Finding(unit) for unit in draw.choices(UNITS, k=draw.randint(1, 6)))
        else:  # each statement once
            units = draw.sample(UNITS[1:], draw.randint(1, 6))
        grade = draw.choice((0, 1 / 3, 2 / 3, 1)) if call.definition.startswith("trulens") else None
        return tuple(Finding(unit, draw.choice(WORDS[type(task)]), "because", grade) for unit in units)

    async def ask(self, call: Call) -> Reply:
        """As above, with "borderline" where no task has such a word."""
        reply = await super().ask(call)
        if call.definition == "deepeval/answer_relevancy" and call.name == "verdicts":
            return Reply(reply.text.replace('"no"', '"borderline"', 1))
        return reply


@pytest.mark.parametrize("seed", range(3))
def test_each_formula_gives_the_score_of_its_framework_on_whatever_is_said(seed: int) -> None:
    counting = [
        *(measure.id for measure in catalogue()[0] if measure.arithmetic()),
        {"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True, "truths_extraction_limit": 1},
        {"id": "trulens/groundedness", "splitter": "llm"},
        {"id": "trulens/context_relevance", "aggregate": "max", "k": 3},
        {"id": "ragas/context_precision", "k": 2, "ranking": "context"},
        {"id": "ragas/context_utilization", "k": 1},
        {"id": "deepeval/contextual_precision", "k": 3, "ranking": "retrieved"},
    ]
    records = [replace(record(), question_id=f"q{n}") for n in range(6)]
    questions = [replace(QUESTION, id=each.question_id) for each in records]
    found = measured(scorers(counting), Random(seed=seed), Material("x", tuple(questions), tuple(records)))
    assert len(found.subjects) == len(counting)
    for each in found.subjects:
        assert each.judged
        for score in found.scores[each.key].values():
            assert score.value is not None, score.reason
            assert applied(each.judged, Evidence(each.id, score.evidence)).middle == pytest.approx(
                score.value, abs=1e-9
            )
