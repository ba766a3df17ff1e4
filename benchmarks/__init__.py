"""Ropeway side by side with its peers: `python -m benchmarks`. README.md says what is counted and how."""
