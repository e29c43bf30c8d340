"""algolen: which transformer, with which position encoding, keeps working on sequences longer than trained on?"""

from __future__ import annotations

__version__ = "0.1.0"
