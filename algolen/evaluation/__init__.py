"""Evaluation: fixed test sets, exact counts by length and stratum, and the greedy decoding they are proved equal to."""
