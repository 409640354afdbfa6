"""The router example through the frameworks' own code: parts go where the change was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.judge import Call, Reply
from adapters.judges.labels import LabelsJudge
from adapters.judges.lexical import LexicalJudge
from runner.audit.comparison import audit
from runner.audit.findings import Group, Pair
from runner.audit.material import Material
from runner.audit.scored import measured, scorers
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
