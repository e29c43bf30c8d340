"""Identities: the hash of what a thing is, the same on every machine and in every release."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(obj: Any) -> str:
    """`obj` as JSON in the one form that is hashed: sorted keys, no spaces, ASCII; NaN and infinities are refused.

    1 and 1.0 are different here: whoever builds `obj` gives every option its type first.
    """
    return json.dumps(obj, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_hash(obj: Any) -> str:
    """The first 16 hex digits of the sha256 of `obj` as canonical JSON."""
    return hashlib.sha256(canonical_json(obj).encode("ascii")).hexdigest()[:16]
