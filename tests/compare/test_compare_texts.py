"""A comparison as page, Markdown, JSON and on the terminal, with texts that would do harm where they were not text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Span, Verdict
from runner import charts, markdown, pages
from runner.compare import files, page, terminal, wording
from runner.compare import markdown as compare_markdown
from runner.compare.findings import Comparison
from runner.compare.paired import compare
from runner.results import StoredRun
from tests.audit.stored import HOSTILE
from tests.audit.test_page import Seen
from tests.compare.runs import by_rank, defined, run

FAITHFUL = defined("ragas/faithfulness", calls="1 + 1", requires=("answer", "context"))


def compared(before: StoredRun, after: StoredRun) -> Comparison:
    return compare(before, after, names=("a", "b"))


def swapped() -> Comparison:
    return compared(by_rank((1, None, 2, 2), "A"), by_rank((2, 2, 1, None), "B"))


def hostile(questions: int = 3) -> Comparison:
    """Every text of questions, chunks, answers, verdicts, slices and settings would do harm."""
    text = "\n".join(HOSTILE)
    ids = [f"q{n} {HOSTILE[n % len(HOSTILE)][:200]}" for n in range(questions)]
    chunk = Chunk(HOSTILE[1], 0, len(text), text)

    def side(value: float, answer: str, word: str, ranking: tuple[Ranked, ...]) -> StoredRun:
        return run(
            {"ragas/faithfulness": dict.fromkeys(ids, value), "labels/recall": dict.fromkeys(ids, value)},
            definitions=[FAITHFUL],
            judge=JudgeCard("labels", HOSTILE[0]),
            questions=[
                Question(id, text, relevant=(Span(HOSTILE[1], 0, 9),), slices=("s" if n else HOSTILE[0],))
                for n, id in enumerate(ids)
            ],
            records=[Record(id, 1, reranked=ranking, answer=answer) for id in ids],
            evidence={("ragas/faithfulness", id): tuple(Verdict(each, word) for each in HOSTILE) for id in ids},
            config={"prompt": {"system": f"{answer} {HOSTILE[0]}"}},
            name=HOSTILE[0],
        )

    return compared(side(1.0, text, "yes", (Ranked(chunk, 1.0, 1),)), side(0.0, f"{text} {HOSTILE[0]}", HOSTILE[1], ()))


def test_the_page_says_that_two_questions_were_swapped_and_shows_the_numbers() -> None:
    text = Seen(page.html(swapped())).text
    assert "All means equal, two questions swapped in recall; four in reciprocal_rank." in text
    assert "labels/recall how much" not in text
    assert "cannot tell 0.750 0.750 0.000" in text
    assert "Equal means, 2 questions changed." in text
    assert "relevant chunk lost (was 2)" in text
    assert "Nothing: the settings of the two runs are the same." in text


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    html = page.html(hostile())
    seen = Seen(html)
    html.encode()  # no lone surrogate is left
    for tag, attributes in seen.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "script", "image", "use"}
        assert not {"src", "style", "href"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    policy = next(each["content"] for tag, each in seen.elements if "http-equiv" in each)
    assert policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert pages.policy_hash(style) in policy
    assert "</script><script>window.ran = 1</script>" in seen.text
    assert "{{ 7 * 7 }} {% raw %}" in seen.text
    assert len(html) < 200_000  # an answer of 100 kB is cut


def test_markdown_keeps_its_tables_whatever_the_texts_are() -> None:
    text = compare_markdown.text(hostile())
    assert len(text) <= markdown.LONGEST
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "<script" not in rendered
    assert "<img" not in rendered
    assert "<h1>title" not in rendered
    assert "@octocat" not in text


def test_markdown_has_the_numbers_and_leaves_out_what_has_no_room() -> None:
    text = compare_markdown.text(swapped())
    assert "**All means equal, two questions swapped in recall; four in reciprocal\\_rank.**" in text
    assert "| labels/recall | cannot tell | 0.750 | 0.750 | **0.000** |" in text
    long = compare_markdown.text(hostile(60))
    assert len(long) <= markdown.LONGEST
    assert "10 more questions in compare.json." in long


def test_the_files_hold_all_of_it(tmp_path: Path) -> None:
    found = hostile(120)
    written = files.write(found, tmp_path)
    assert [path.name for path in written] == ["compare.json", "compare.md", "compare.html"]
    data = json.loads(written[0].read_text("utf-8"))
    assert len(data["changes"]) == 120
    assert {"p", "adjusted", "word", "swapped", "changed"} <= set(data["rows"][0])
    assert data["rows"][0]["p"]["method"] == "exact McNemar"
    assert data["baseline"]["folder"] == str(found.baseline.folder)


def test_the_terminal_stays_within_100_columns_and_is_not_steered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_FORMAT", "text")
    terminal.show(hostile(30), [])
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\u202e" not in said.out
    assert max(map(len, (said.out + said.err).splitlines())) <= 100
    assert "the first 10 of 30; all are in compare.json" in " ".join(said.out.split())
    assert "Retrieval, 30 questions" in said.out
    assert "Generation, 30 questions" in said.out


def test_json_on_the_terminal_is_the_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARIBUS_FORMAT", "json")
    found = swapped()
    terminal.show(found, files.write(found, tmp_path))
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "compare.json").read_text("utf-8"))


def test_nothing_to_compare_is_told_everywhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_FORMAT", "text")
    found = compared(run({"labels/a": {"q": 1.0}}), run({"labels/b": {"q": 1.0}}))
    terminal.show(found, [])
    for text in (capsys.readouterr().out, compare_markdown.text(found), Seen(page.html(found)).text):
        assert "Nothing could be compared." in text
        assert "the candidate does not have it" in text


def test_the_headline_sorts_by_word() -> None:
    before = run({key: {f"q{n}": 0.0 for n in range(10)} for key in ("labels/up", "x/same", "x/few")})
    after = run(
        {
            "labels/up": {f"q{n}": 1.0 for n in range(10)},
            "x/same": {f"q{n}": 0.0 for n in range(10)},
            "x/few": {f"q{n}": float(n < 2) for n in range(10)},
        }
    )
    assert wording.headline(compared(before, after)) == "Better: up (+1.000). Cannot tell: x/few. Unchanged: x/same."
    assert wording.headline(compared(before, before)) == "No score of any question changed, under 3 definitions."


def test_a_pair_of_dots_lies_where_its_means_are() -> None:
    # 0 to 1 over 328 units from 6: .25 is at 88, .75 at 252.
    drawn = charts.pairs([charts.Pair("<a>", 0.25, 0.75, "+0.500")], "t")
    assert re.findall(r'<circle class="(\w+)" cx="([\d.]+)"', drawn) == [("hollow", "88.0"), ("dot", "252.0")]
    assert "&lt;a&gt;: 0.250 to 0.750, +0.500" in drawn
