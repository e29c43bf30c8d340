"""No position encoding: order is known through the causal mask alone."""

from __future__ import annotations

from algolen.encodings.base import Encoding


class NoPE(Encoding):
    """Nothing is added anywhere; a causal transformer can still count what it sees.

    Haviv et al. 2022 (arXiv 2203.16634); Kazemnejad et al. 2023 (arXiv 2305.19466).
    """

    name = "nope"
    kind = "none"
    paper = "Haviv et al. 2022, arXiv 2203.16634; Kazemnejad et al. 2023, arXiv 2305.19466"
    causal_only = True
