"""Whole RAG systems that stand in place of the stages: a function, an HTTP service, a file of finished answers."""
