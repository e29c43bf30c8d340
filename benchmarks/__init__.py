"""Speed, mostly against rivals: `python -m benchmarks` prints tables and fails where a bar is missed."""
