"""What a sweep says to do: which variants to keep, what they cost, and what to sweep next."""
