"""ALiBi with drawn distances."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.alibi import Alibi, AlibiOptions
from algolen.encodings.base import Drawn, Site
from algolen.encodings.random_distances import DistanceOptions, DrawsDistances, by_distance, in_pairs

NEARER = 0.5
"""By how much distances to the past are shorter with bidirectional attention."""


@dataclass(frozen=True)
class RandomizedAlibiOptions(AlibiOptions, DistanceOptions):
    pass


class RandomizedAlibi(DrawsDistances, Alibi):
    """ALiBi of drawn distances: −slope·r_m on the logits of tokens m apart, r a random increasing map of distances.

    Ruoss et al. 2023 (arXiv 2305.16843), as in the released code. `randomized+alibi` draws the positions of tokens and
    takes their differences, which vary along the tape; here all pairs m apart share r_m, drawn anew in every layer, at
    every step and at test as well, there once for each block of 64 examples, or evenly spaced (--positions even).

    With bidirectional attention the past is nearer by ½, since without signs nothing else tells it from what is ahead.
    """

    name = "randomized-alibi"
    paper = "Ruoss et al. 2023, arXiv 2305.16843"
    Options = RandomizedAlibiOptions

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return by_distance(drawn.noise)

    def bias(self, site: Site) -> Tensor:
        distance_BN: Tensor = site.ctx[:, site.layer]
        far_BN = distance_BN.abs()
        if not site.causal:
            far_BN = far_BN - NEARER * (distance_BN > 0)
        return self.falling(in_pairs(far_BN[:, None, None], site.ids_BTA.shape[1]))
