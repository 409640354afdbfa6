"""Two runs side by side: what changed, beyond chance or not, and in which questions."""
