"""The pictures of docs/mlflow.md, from a real sweep: `make screenshots`, or python -m tests.browser.pictures FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.commands import paribus
from tests.browser.conftest import CHROMIUM, OPTIONS
from tests.browser.mlflow_pages import WAIT, follow, open_run, opened, served, unfold, unfold_reason

SHOWN = "[labels/recall,labels/answer_f1,ragas/faithfulness]"
SWEEP = ("chunker.size=200,400", "retriever.k=3,10", "judge=lexical", f"metrics.definitions={SHOWN}")
VARIANT = "chunker.size=400"
QUESTION = "Roost shows the warning MESH_DEPTH"
"""One whose passage is buried and whose answer has three claims, one of them supported."""


def main(folder: Path) -> None:
    """Run the sweep, look at it in MLflow, and write the pictures to `folder`."""
    expect.set_options(timeout=WAIT)
    with TemporaryDirectory(prefix="paribus-pictures-") as made, sync_playwright() as driver:
        paribus(Path(made), "sweep", *SWEEP, f"metrics.table={SHOWN}")
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, chromium_sandbox=os.geteuid() != 0)
        with served(Path(made, "mlruns")) as address:
            with opened(chromium, 1800, 560) as page:  # the columns of differences stand before those of means
                unfold(page, address, "sweep ", VARIANT)
                _picture(page, folder / "mlflow-sweep.png")
                page.get_by_role("link", name="sweep ").first.click()
                page.get_by_text("Show more", exact=True).click()
                follow(page, "labels/recall")
                expect(page.locator(".xtick").filter(has_text="400").first).to_be_visible()
                page.set_viewport_size({"width": 1500, "height": 680})
                _picture(page, folder / "mlflow-chart.png")
            with opened(chromium, 1500, 900) as page:
                unfold(page, address, "sweep ", VARIANT)
                open_run(page, VARIANT)
                follow(page, "Questions of this run")
                search = page.get_by_placeholder("Search traces by id, request, or response")
                search.fill(QUESTION)
                search.press("Enter")
                page.get_by_text(QUESTION).first.click()
                page.get_by_role("button", name="Assess").click()
                for name, value in (("fault", "buried"), ("ragas:faithfulness", "0.33")):
                    unfold_reason(page, name, value)
                _picture(page, folder / "mlflow-trace.png")
            with opened(chromium, 1960, 580) as page:  # scores stand to the right of the answers
                unfold(page, address, "sweep ", VARIANT)
                open_run(page, VARIANT)
                follow(page, "Compare with the baseline question by question")
                expect(page.get_by_text("Comparing")).to_be_visible()
                _picture(page, folder / "mlflow-compare.png")
        chromium.close()


def _picture(page: Page, file: Path) -> None:
    page.wait_for_timeout(5_000)  # MLflow's pages ask on and on, so that no state says that they are complete
    page.screenshot(path=file, style="* { background-image: none !important }")  # a third of the bytes


if __name__ == "__main__":
    main(Path(sys.argv[1]))
