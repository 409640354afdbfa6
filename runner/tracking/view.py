"""Which columns MLflow's list of runs shows: a saved view of the experiment, which `paribus ui` opens.

The format is what the pages of MLflow 3.17.2 write under "Save as new view": an experiment tag whose value names the
view and holds its state as JSON, deflated, in base64.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from time import time
from typing import Any

from runner.run_log import metric_name

NAME = "paribus"
TAG = f"mlflow.sharedViewState.{NAME}"


def saved_view(keys: Sequence[str]) -> str:
    """The value of TAG for a view with variable, value, and each of these definitions with its difference."""
    metrics = [f"metrics.`{kind}{metric_name(key)}`" for key in keys for kind in ("", "delta/")]
    columns = ["tags.`paribus.variable`", "tags.`paribus.value`", *metrics]
    state: dict[str, Any] = {
        "searchFilter": "",
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns,
        "columnOrder": [],
        "columnWidths": {},
        "runsHiddenMode": "FIRST_20_RUNS",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
    }
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    now = int(time() * 1000)
    return json.dumps({"name": NAME, "createdAt": now, "updatedAt": now, "state": f"deflate;{packed}"})


def page(experiment_id: str) -> str:
    """The page with that view, below the address of the server."""
    return f"/#/experiments/{experiment_id}/runs?viewStateShareKey={NAME}"
