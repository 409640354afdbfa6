"""Copies of results in MLflow, for people to look at and baselines to be found. Only this package imports mlflow."""

from runner.tracking.address import tracking_uri as tracking_uri
from runner.tracking.processes import process_started as process_started
from runner.tracking.tracker import ACCEPTED as ACCEPTED
from runner.tracking.tracker import Tracker as Tracker
from runner.tracking.ui import ui_command as ui_command
