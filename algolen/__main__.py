"""`python -m algolen`."""

from __future__ import annotations

from algolen.cli import main

main()
