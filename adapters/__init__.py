"""The definitions: what a score means, and the score itself. Knows nothing of runner, Hydra or MLflow."""
