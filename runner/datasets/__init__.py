"""Sources of test sets, one a file."""
