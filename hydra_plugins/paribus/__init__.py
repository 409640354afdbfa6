"""Hydra plugins of paribus. Hydra finds them because they lie under `hydra_plugins`, a namespace package."""
