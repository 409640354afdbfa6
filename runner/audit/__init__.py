"""The audit: scores of one name laid side by side, and why they differ."""
