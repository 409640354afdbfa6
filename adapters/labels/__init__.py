"""Definitions computed from labels and references alone: no judge, no framework, our own arithmetic.

`relevance` lays a ranking beside the labelled spans; `ranking`, `spans` and `answers` hold the definitions.
"""
