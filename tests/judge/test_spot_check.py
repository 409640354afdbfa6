"""`paribus judge sample` and `paribus judge labels`: answers drawn for people, and their verdicts in the test set."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from adapters.base import scorer
from adapters.judges.labels import LabelsJudge, human_verdicts
from adapters.schema import Question
from runner.cli import main
from runner.errors import ConfigError, DataError
from runner.human_labels import COLUMNS, read_labels
from runner.results import read_run
from runner.scoring import score
from runner.spot_check import Sample, draw, page_text, put_back, table_text, write
from tests.judge.said import CONTEXT, NO, SUPPORTED, YES, label, written
from tests.judge.test_align import stored

SCRIPT = "</script><script>alert(1)</script>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def command(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        return (main(["judge", *arguments]), *capfd.readouterr())

    return command


def a_run() -> Path:
    """40 answers: 20 YES and 10 NO of slice a, 6 YES and 3 broken of slice b, one without text."""
    answers = {f"a{n}": YES for n in range(20)} | {f"n{n}": NO for n in range(10)}
    answers |= {f"b{n}": YES for n in range(6)} | {f"f{n}": "BREAK" for n in range(3)} | {"blank": " "}
    return stored(answers, {name: ("a" if name[0] in "an" else "b", "other") for name in answers})


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="sample">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


# Drawing.


def test_every_stratum_gives_its_share_to_within_one() -> None:
    sample = draw(a_run(), 0.5)
    assert sample.definition == "mine/supported"
    assert sample.unanswered == 1
    strata = {(found.slice, found.band): (found.of, found.drawn) for found in sample.strata}
    assert {key: of for key, (of, _) in strata.items()} == {
        ("a", "high"): 20,
        ("a", "low"): 10,
        ("b", "high"): 6,
        ("b", "failed"): 3,
    }
    for of, drawn in strata.values():
        assert abs(drawn - of / 2) < 1
    assert len(sample.drawn) in (19, 20)


def test_a_seed_fixes_the_sample_and_each_answer_has_the_same_chance() -> None:
    run = a_run()
    assert draw(run, 0.3, seed=5) == draw(run, 0.3, seed=5)
    assert draw(run, 0.3, seed=5).drawn != draw(run, 0.3, seed=6).drawn
    often = Counter(drawn.id for seed in range(200) for drawn in draw(run, 0.3, seed=seed).drawn)
    assert len(often) == 39
    # 200 draws at 0.3: 60 each, standard deviation 6.5; four of those to either side.
    assert all(34 <= count <= 86 for count in often.values())
    # ... the failed ones too: 3 * 60, and at most one more or less a draw
    assert sum(often[f"f{n}"] for n in range(3)) == pytest.approx(180, abs=40)


def test_all_is_all() -> None:
    assert len(draw(a_run(), 1.0).drawn) == 39


def test_what_is_drawn_is_what_people_need_and_not_what_the_judge_said() -> None:
    run = stored({"q1": f"{YES}\n{NO}", "q2": f"BREAK it. {YES}"})
    one, other = draw(run, 1.0).drawn
    assert (one.claims, one.contexts, one.record) == ((YES, NO), (CONTEXT,), "run/q1")
    assert other.claims == ("BREAK it.", YES)  # the judge failed: sentences
    for text in (page_text(draw(run, 1.0)), table_text(draw(run, 1.0))):
        assert "holds 100%" not in text
    assert "verdict" not in embedded(page_text(draw(run, 1.0)))["items"][0]


@pytest.mark.parametrize("share", [0.0, 1.1, -1.0, 0.0001])
def test_a_share_that_gives_nothing_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=f"--share {share:g}"):
        draw(stored({"q1": YES}), share)


def test_an_unknown_definition_is_refused() -> None:
    with pytest.raises(ConfigError, match="labels/recall is no judged definition of run; they are mine/supported"):
        draw(stored({"q1": YES}), 1.0, "labels/recall")


# The page.


def hostile() -> Sample:
    return draw(stored({"q1": f"{SCRIPT}\n{YES}\n<!-- \u2028 ü 😀"}), 1.0)


def test_texts_of_others_stand_in_the_page_as_json_only() -> None:
    page = page_text(hostile())
    assert "alert(1)</script>" not in page
    (item,) = embedded(page)["items"]
    assert item["answer"] == f"{SCRIPT}\n{YES}\n<!-- \u2028 ü 😀"
    assert item["claims"] == [SCRIPT, YES, "<!-- \u2028 ü 😀"]
    assert page.count("<script") == 2


def test_the_page_asks_for_nothing_from_anywhere() -> None:
    page = page_text(hostile())
    assert "default-src 'none'" in page
    for word in ("http:", "https:", "src=", "@import", "fetch(", "XMLHttpRequest", "innerHTML", "{{"):
        assert word not in page, word
    assert 'name="viewport"' in page


NODE = shutil.which("node")
STUB = """
class Element {
  constructor(name) { this.name = name; this.children = []; this.dataset = {}; this.heard = {}; this.value = ""; }
  append(...more) {
    for (const each of more) {
      if (each instanceof Element) each.parent = this;
      this.children.push(each);
    }
  }
  addEventListener(event, does) { this.heard[event] = does; }
  focus() { document.activeElement = this; }
  click() { if (this.type === "radio") this.heard.change(); else if (this.heard.click) this.heard.click(); }
  scrollIntoView() {}
  all() { return this.children.filter((c) => c instanceof Element).flatMap((c) => [c, ...c.all()]); }
  contains(other) { return other === this || this.all().includes(other); }
  closest(name) { for (let at = this; at; at = at.parent) if (at.name === name) return at; return null; }
  querySelector(query) {
    const key = /data-key="(.)"/.exec(query);
    const wanted = (c) => c.type === "radio" && (!key || c.dataset.key === key[1]) && !query.includes(":checked");
    return this.all().find(wanted) || null;
  }
}
const body = new Element("body"), main = new Element("main");
body.append(main);
const named = {who: new Element(""), save: new Element(""), state: new Element(""), sample: new Element("")};
named.sample.textContent = require("fs").readFileSync(0, "utf8");
let saved = null;
const heard = {};
globalThis.document = {
  activeElement: body,
  getElementById: (name) => named[name],
  createElement: (name) => new Element(name),
  querySelector: () => main,
  querySelectorAll: () => main.all().filter((each) => each.name === "fieldset"),
  addEventListener: (event, does) => { heard[event] = does; },
};
globalThis.localStorage = {getItem: () => null, setItem: () => { throw new Error("closed"); }};
globalThis.Blob = class { constructor(parts) { saved = parts.join(""); } };
globalThis.URL = {createObjectURL: () => "blob:"};
globalThis.CSS = {escape: (text) => text};
console.warn = () => {};
"""


def pressed(page: str, keys: str, who: str, folder: Path) -> dict[str, Any]:
    """What the page saves after these keys on its first claim, and what it says, in a document made of stubs."""
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    driver = f"""
document.querySelectorAll()[0].querySelector("input").focus();
for (const key of {json.dumps(keys)}) {{
  heard.keydown({{key, target: document.activeElement, preventDefault() {{}}}});
}}
named.who.value = {json.dumps(who)};
named.save.click();
process.stdout.write(JSON.stringify({{saved, state: named.state.textContent}}));
"""
    (folder / "page.js").write_text(STUB + script + driver, encoding="utf-8")
    assert NODE
    sample = re.findall(r'id="sample">(.*?)</script>', page, re.DOTALL)[0]
    done = subprocess.run([NODE, "page.js"], input=sample, capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.skipif(NODE is None, reason="node is not installed, and nothing else here runs the script of the page")
def test_what_the_page_saves_is_a_file_of_labels(folder: Path) -> None:
    page = page_text(draw(stored({"q1": f"{YES}\n{NO}\n{SCRIPT}", "q2": YES}), 1.0))
    # supported, absent, no claim; q2 stays unmarked and is not saved
    found = pressed(page, "130", " Ada ", folder)
    assert found["state"] == "Saved 1 answers."
    Path("review.jsonl").write_text(found["saved"], encoding="utf-8")
    (saved,) = read_labels(Path("review.jsonl"))
    assert (saved.id, saved.who, saved.record) == ("q1", "Ada", "run/q1")
    assert saved.when is not None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", saved.when)
    assert [(claim.text, claim.verdict) for claim in saved.claims or ()] == [(YES, "supported"), (NO, "absent")]
    assert pressed(page, "1", "Ada", folder)["state"] == "No answer is marked in full yet."
    assert pressed(page, "1321", "", folder)["state"].startswith("Write your name first")


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; the script is run by node with stubs")
def test_a_browser_shows_every_claim(folder: Path) -> None:
    write(hostile(), folder / "review.html")
    assert CHROMIUM
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", "--dump-dom")
    page = (folder / "review.html").as_uri()
    done = subprocess.run([CHROMIUM, *options, page], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("<fieldset") == 3
    assert "0 of 1 answers done" in done.stdout


# The table.


def test_a_table_comes_back_as_labels_whatever_the_texts() -> None:
    answer = f"=1+1\n- {YES}\n'quoted', \"twice\"; ü\n{NO}"
    sample = draw(stored({"q1": answer, "q2": YES}), 1.0)
    write(sample, Path("review.html"), Path("review.csv"))
    rows = list(csv.DictReader(StringIO(Path("review.csv").read_text(encoding="utf-8-sig"), newline="")))
    assert len(rows) == 5
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    for row, verdict in zip(rows, ("absent", "Supported ", "", "contradicted", ""), strict=True):
        row |= {"verdict": verdict, "who": "Ada", "when": "2026-11-30"}
    for delimiter in ",;":  # as spreadsheets of different countries save it
        with Path("done.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, delimiter=delimiter)
            table.writeheader()
            table.writerows(rows)
        (found,) = read_labels(Path("done.csv"))  # q2 was not marked
        assert (found.answer, found.who, found.contexts, found.record) == (answer, "Ada", (CONTEXT,), "run/q1")
        assert [(claim.text, claim.verdict) for claim in found.claims or ()] == [
            ("=1+1", "absent"),
            (f"- {YES}", "supported"),
            (NO, "contradicted"),
        ]


def test_faults_of_a_table_have_their_line() -> None:
    write(draw(stored({"q1": YES}), 1.0), Path("review.html"), Path("review.csv"))
    text = Path("review.csv").read_text(encoding="utf-8-sig")
    with pytest.raises(DataError, match="has no label"):
        read_labels(Path("review.csv"))
    Path("bad.csv").write_text(text.rstrip().removesuffix(",") + ",maybe\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad.csv:2: claims\[0\].verdict is 'maybe'"):
        read_labels(Path("bad.csv"))
    Path("bad.csv").write_text(text.replace("verdict", "word"), encoding="utf-8")
    with pytest.raises(DataError, match="the column verdict is missing"):
        read_labels(Path("bad.csv"))


def test_a_claim_that_is_marked_twice_in_a_table_is_told_with_both_lines() -> None:
    # The answer of q1 has two lines, so that its rows have two: rows begin in lines 2, 4 and 6.
    fields = {"question": "?", "contexts": json.dumps([CONTEXT]), "split": "tune"}
    rows = [
        {"id": "q1", "answer": f"{YES}\n{NO}", "claim": YES, "verdict": "supported"},
        {"id": "q1", "answer": f"{YES}\n{NO}", "claim": f" {YES} ", "verdict": "absent"},
        {"id": "q2", "answer": YES, "claim": YES, "verdict": "absent"},
    ]
    out = StringIO()
    table = csv.DictWriter(out, COLUMNS)
    table.writeheader()
    table.writerows({**fields, **row} for row in rows)
    Path("twice.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    with pytest.raises(DataError) as told:
        read_labels(Path("twice.csv"))
    assert str(told.value).splitlines()[1:] == [
        f"twice.csv:2: the claim {YES} is marked 'absent' in line 4 and 'supported' in line 2; keep one"
    ]


def of_rows(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> Path:
    plain = {"id": "q1", "question": "?", "answer": YES, "contexts": json.dumps([CONTEXT]), "claim": YES}
    with Path("rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(plain | {"verdict": "supported", "who": "Ada"} | row for row in rows)
    return Path("rows.csv")


def test_rows_of_one_answer_that_differ_are_told_with_both_lines() -> None:
    rows = [{"claim": "A"}, {"claim": "B", "who": "Bob", "when": "2026-11-30"}, {"claim": "C", "answer": NO, "who": ""}]
    with pytest.raises(DataError) as told:
        read_labels(of_rows(*rows))
    assert str(told.value).splitlines()[1:] == [
        "rows.csv:2: who is Bob in line 3 and Ada in line 2; keep one",
        f"rows.csv:2: answer is {NO} in line 4 and {YES} in line 2; keep one",
    ]


def test_who_and_when_may_stand_in_any_row_of_an_answer() -> None:
    days = [{"claim": "A", "who": ""}, {"claim": "B", "when": "2026-11-29"}, {"claim": "C", "when": "2026-11-30"}]
    (found,) = read_labels(of_rows(*days))
    assert (found.who, found.when, len(found.claims or ())) == ("Ada", "2026-11-29", 3)


def test_long_contexts_come_back() -> None:
    contexts = [CONTEXT * 10_000, "x" * 200_000]
    (found,) = read_labels(of_rows({"contexts": json.dumps(contexts)}))
    assert found.contexts == tuple(contexts)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text.replace(f"{YES},supported", f'"{YES},supported'), "the table is broken near line"),
        (lambda text: text.replace(",supported", ",supported,,more"), "line 2 has more cells than there are columns"),
        (lambda text: text.replace("]", ""), r"contexts is no JSON list; .* more than 32,767 characters"),
        (lambda text: text.replace('"[', f'"{"[" * 100_000}'), "contexts is no JSON list"),
        (lambda text: text.replace(",supported", ","), "has no label: no row has a verdict"),
    ],
    ids=["lost quotation mark", "more cells", "cut off", "deep", "no verdict"],
)
def test_a_table_that_was_spoiled_is_told(change: Callable[[str], str], told: str) -> None:
    path = of_rows({})
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=told):
        read_labels(path)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\n", "'", "'="])
def test_no_cell_is_a_formula_and_every_text_comes_back(start: str) -> None:
    answer = f"{start}cmd|' /C calc'!A0 is {YES}"
    table = Path("formula.csv")
    table.write_text(table_text(draw(stored({"q1": answer}), 1.0)), encoding="utf-8", newline="")
    rows = list(csv.DictReader(StringIO(table.read_text(encoding="utf-8"), newline="")))
    assert rows
    assert not [cell for row in rows for cell in row.values() if cell.startswith(tuple("=+-@＝＋－＠\t\r\n"))]
    of_rows(*[{name: cell for name, cell in row.items() if cell} for row in rows])
    (found,) = read_labels(Path("rows.csv"))
    assert found.answer == answer


def test_a_table_is_a_file_of_labels_for_align_too(cli: Callable[..., tuple[int, str, str]]) -> None:
    run = stored({f"q{n}": YES for n in range(3)})
    code, out, err = cli("align", str(of_rows({}, {"id": "q1", "claim": NO})), "--run", str(run))
    assert (code, "1 answers" in out) == (0, True), err


# Back into the test set.


def test_verdicts_go_into_their_line_and_no_other_byte_changes() -> None:
    first = b'\xef\xbb\xbf{"id": "q0",   "question": "Why?"}\r\n'
    second = '{"question":"Wer öffnet?", "id":"q1", "slices":["x"]}\r\n'.encode()
    last = b'{"id": "q2", "question": "Who?", "human": {"answer": "Ada."}}'
    Path("questions.jsonl").write_bytes(first + b"\r\n" + second + b"not json\r\n" + last)
    review = [label("q1", [YES, NO], ["supported", "absent"], who="Ada", when="2026-11-30", record="run/q1")]
    done = put_back(written(Path("review.jsonl"), review), Path("questions.jsonl"))
    assert done.changed == (("q1", "Ada", "2026-11-30", "run/q1"),)
    lines = Path("questions.jsonl").read_bytes().split(b"\r\n")
    assert b"\r\n".join([*lines[:2], *lines[3:]]) == first + b"\r\n" + b"not json\r\n" + last
    row = json.loads(lines[2])
    assert list(row) == ["question", "id", "slices", "human"]
    assert "öffnet" in lines[2].decode()
    human = human_verdicts(Question("q1", row["question"], human=row["human"]))
    assert human.answer == f"{YES}\n{NO}"
    assert [(claim.text, claim.verdict) for claim in human.claims or ()] == [(YES, "supported"), (NO, "absent")]
    assert (human.who, human.when, human.record) == ("Ada", "2026-11-30", "run/q1")
    assert human.context == (CONTEXT,)
    before = Path("questions.jsonl").read_bytes()
    again = put_back(Path("review.jsonl"), Path("questions.jsonl"))
    assert (again.changed, again.unchanged) == ((), 1)
    assert Path("questions.jsonl").read_bytes() == before


def test_what_people_said_besides_stays_and_claims_are_replaced_only_when_told() -> None:
    human = {"answer": YES, "addresses_question": 1.0}
    other = {"answer": "Another answer.", "declines": False}
    rows = [{"id": "q1", "question": "?", "human": human}, {"id": "q2", "question": "?", "human": other}]
    written(Path("questions.jsonl"), rows)
    review = [label("q1", [YES], ["supported"], who="Ada"), label("q2", [NO], ["absent"])]
    before = Path("questions.jsonl").read_bytes()
    with pytest.raises(DataError, match=r"review.jsonl:2: question q2 .* has what people said of another answer"):
        put_back(written(Path("review.jsonl"), review), Path("questions.jsonl"))
    assert Path("questions.jsonl").read_bytes() == before
    assert len(put_back(Path("review.jsonl"), Path("questions.jsonl"), replace=True).changed) == 2
    one, two = (json.loads(line)["human"] for line in Path("questions.jsonl").read_text(encoding="utf-8").splitlines())
    claims = [{"text": YES, "verdict": "supported"}]
    assert one == {**human, "context": [CONTEXT], "claims": claims, "who": "Ada"}
    assert two == {"answer": NO, "context": [CONTEXT], "claims": [{"text": NO, "verdict": "absent"}]}
    written(Path("second.jsonl"), [label("q1", [YES], ["absent"], who="Ben")])
    with pytest.raises(DataError, match="has claims of the same answer"):
        put_back(Path("second.jsonl"), Path("questions.jsonl"))


def test_verdicts_on_the_reference_never_get_another_context() -> None:
    human = {"answer": YES, "context": ["Other."], "reference_claims": [{"text": "R.", "in_context": True}]}
    for old in (human, {name: value for name, value in human.items() if name != "context"}):
        written(Path("questions.jsonl"), [{"id": "q1", "question": "?", "human": old}])
        written(Path("review.jsonl"), [label("q1", [YES], ["supported"])])
        with pytest.raises(DataError, match="of another answer or context"):
            put_back(Path("review.jsonl"), Path("questions.jsonl"))
        put_back(Path("review.jsonl"), Path("questions.jsonl"), replace=True)
        row = json.loads(Path("questions.jsonl").read_text(encoding="utf-8"))
        assert "reference_claims" not in row["human"]


def test_labels_without_a_place_are_all_told_and_nothing_is_written() -> None:
    written(Path("questions.jsonl"), [{"id": "q1", "question": "?"}, *[{"id": "q2", "question": "?"}] * 2])
    review = [
        label("q1", [YES], ["supported"]),
        label("q2", [YES], ["supported"]),
        label("q3", [YES], ["supported"]),
        label("q4", [YES], 1.0),
    ]
    before = Path("questions.jsonl").read_bytes()
    with pytest.raises(DataError) as told:
        put_back(written(Path("review.jsonl"), review), Path("questions.jsonl"))
    text = str(told.value)
    assert "nothing was put into questions.jsonl: 3 faults" in text
    assert "review.jsonl:2: question q2 stands 2 times in questions.jsonl" in text
    assert "review.jsonl:3: question q3 is not in questions.jsonl" in text
    assert "review.jsonl:4: a score does not say which claims are supported" in text
    assert "mark the claims in its place (`paribus judge sample` makes a page for that)" in text
    assert Path("questions.jsonl").read_bytes() == before


def test_the_labels_judge_answers_from_what_came_back() -> None:
    run = read_run(stored({"q1": f"{YES}\n{NO}"}))
    written(Path("questions.jsonl"), [{"id": "q1", "question": "When does the shop open?"}])
    # Ada sees NO in the context, which the lexical judge does not.
    review = written(Path("review.jsonl"), [label("q1", [YES, NO], ["absent", "supported"], record="run/q1")])
    put_back(review, Path("questions.jsonl"))
    row = json.loads(Path("questions.jsonl").read_text(encoding="utf-8"))
    question = Question("q1", row["question"], human=row["human"])
    (found,) = score([scorer(SUPPORTED)], [question], [run.records["q1"]], LabelsJudge())
    assert (found.status, found.value) == ("computed", 0.5), found.reason
    assert [verdict.ours for verdict in found.evidence] == ["absent", "supported"]


# The commands.


def test_the_commands_from_run_to_test_set(cli: Callable[..., tuple[int, str, str]]) -> None:
    run = a_run()
    code, out, err = cli("sample", "--run", str(run), "--share", "0.5", "--to", "to/review.html", "--csv", "to/r.csv")
    assert code == 0
    assert re.search(r"b +failed +3 +[12]\b", out)
    assert re.search(r"(19|20) of 39 answers drawn \(seed 0\)", err)
    assert "1 questions have no answer" in err
    assert "alert" not in Path("to/review.html").read_text(encoding="utf-8")
    assert Path("to/r.csv").is_file()
    code, out, _ = cli("sample", "--run", str(run), "--json")
    assert code == 0
    assert json.loads(out)["written"] == ["review.html"]
    written(Path("questions.jsonl"), [{"id": "a1", "question": "?"}])
    written(Path("review.jsonl"), [label("a1", [YES], ["supported"], who="Ada", when="2026-11-30", record="run/a1")])
    code, out, err = cli("labels", "review.jsonl", "--into", "questions.jsonl")
    assert code == 0
    assert re.search(r"a1 +Ada +2026-11-30 +run/a1", out)
    assert "1 questions changed" in err
    code, out, _ = cli("labels", "review.jsonl", "--into", "questions.jsonl", "--json")
    assert json.loads(out) == {"changed": [], "unchanged": 1}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["sample", "--run", "nowhere"], "nowhere is no result folder"),
        (["sample", "--run", "nowhere", "extra"], "extra: no such argument"),
        (["labels", "absent.jsonl", "--into", "questions.jsonl"], "cannot read absent.jsonl"),
        (["labels", "absent.csv", "--into", "questions.jsonl"], "cannot read absent.csv"),
        (["labels", "review.jsonl", "--into", "absent.jsonl"], "cannot read absent.jsonl"),
    ],
)
def test_mistakes_end_with_2_and_a_sentence(
    cli: Callable[..., tuple[int, str, str]], arguments: list[str], part: str
) -> None:
    written(Path("review.jsonl"), [label("a1", [YES], ["supported"])])
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert part in err
