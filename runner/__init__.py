"""paribus: RAG experiments in which one thing changes at a time."""

__version__ = "0.1.0"
