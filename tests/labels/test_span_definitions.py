from __future__ import annotations

import pytest
from rankings import chunk, ranking, score, value

from adapters.schema import Question, Record, Span


def laid(chunks, labels, touching=()):
    return Question("q", "?", relevant=tuple(labels)), Record(
        "q", reranked=ranking(chunks), labelled=tuple(touching or chunks)
    )


def test_the_four_of_the_chroma_report():
    # L = [10, 30) and [50, 60): 30. Chunks [0, 20), [15, 35), [100, 120): C = [10, 30) = 20; T = 60 (5 counted twice).
    chunks = [chunk("d", 0, 20), chunk("d", 15, 35), chunk("d", 100, 120)]
    touching = [chunk("d", 0, 20), chunk("d", 15, 35), chunk("d", 45, 65)]
    question, record = laid(chunks, [Span("d", 10, 30), Span("d", 50, 60)], touching)
    assert value("span_recall", question, record) == pytest.approx(20 / 30)
    assert value("span_precision", question, record) == pytest.approx(20 / 60)
    assert value("span_iou", question, record) == pytest.approx(20 / (60 + 10))
    # Omega: [0, 20), [15, 35) and [45, 65) touch a label; 30 labelled of 60.
    assert value("span_precision_omega", question, record) == pytest.approx(30 / 60)
    # Cut at one chunk: C = [10, 20) = 10; T = 20.
    assert value("span_recall", question, record, k=1) == pytest.approx(10 / 30)
    assert value("span_precision", question, record, k=1) == pytest.approx(10 / 20)
    assert value("span_iou", question, record, k=1) == pytest.approx(10 / (20 + 20))
    natives = [verdict.native for verdict in score("span_recall", question, record).evidence]
    assert natives == ["10 of 20 characters", "15 of 20 characters", "0 of 20 characters"]


def test_overlapping_labels_are_one_stretch_of_text():
    # [0, 10) and [5, 15) are 15 characters, of which the chunk covers 10.
    question, record = laid([chunk("d", 5, 25)], [Span("d", 0, 10), Span("d", 5, 15)])
    assert value("span_recall", question, record) == pytest.approx(10 / 15)
    assert value("span_precision", question, record) == pytest.approx(10 / 20)


def test_only_spans_of_the_grade_count_and_documents_are_apart():
    question, record = laid([chunk("d", 0, 10), chunk("e", 0, 10)], [Span("d", 0, 10, 2), Span("e", 0, 10, 1)])
    assert value("span_precision", question, record) == 1.0
    assert value("span_precision", question, record, min_grade=2) == 0.5
    assert value("span_precision_omega", question, record, min_grade=2) == 1.0


def test_a_repeated_chunk_covers_once_and_costs_twice():
    question, record = laid([chunk("d", 0, 10), chunk("d", 0, 10)], [Span("d", 0, 10)])
    assert value("span_recall", question, record) == 1.0
    assert value("span_precision", question, record) == 0.5
    assert value("span_precision_omega", question, record) == 1.0


def test_omega_without_chunks_that_touch_a_label():
    question, record = laid([], [Span("d", 0, 10)])
    result = score("span_precision_omega", question, record)
    assert result.status == "not_applicable"
    assert "labelled" in result.reason
