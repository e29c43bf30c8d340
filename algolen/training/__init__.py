"""Training: which examples at which step (`data`), a step (`step`), the loop around it (`loop`)."""
