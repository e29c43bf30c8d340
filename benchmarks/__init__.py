"""Speed against hand-written rivals: `python -m benchmarks` prints a table and fails where a bar is missed."""
