"""Transformer-XL's relative positions with drawn distances."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Site
from algolen.encodings.random_distances import DistanceOptions, DrawsDistances, by_distance, in_pairs
from algolen.encodings.transformer_xl import TransformerXL, TransformerXLOptions


@dataclass(frozen=True)
class RandomizedRelativeOptions(TransformerXLOptions, DistanceOptions):
    pass


class RandomizedRelative(DrawsDistances, TransformerXL):
    """Transformer-XL's u·k + (q + v)·W R(r_m) for tokens m apart, r a random increasing map of distances.

    Ruoss et al. 2023 (arXiv 2305.16843), where it is called relative. `randomized+transformer-xl` draws the positions
    of tokens and takes their differences, which vary along the tape; here all pairs m apart share r_m, drawn anew in
    every layer, at every step and at test as well, there once for each block of 64 examples, or evenly spaced
    (--positions even). R(−r_m) for keys ahead of the query.

    Published for bidirectional attention; that causal attention takes the distances to the past is our extension. In
    the released code distances that are not to the past leave the table of sinusoids and share one row of it; this is
    the form that is meant.
    """

    name = "randomized-relative"
    paper = "Ruoss et al. 2023, arXiv 2305.16843"
    Options = RandomizedRelativeOptions

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return by_distance(drawn.noise)

    def position(self, query_BHTK: Tensor, site: Site) -> Tensor:
        distance_BN, size = site.ctx[:, site.layer], query_BHTK.shape[-2]
        if site.causal:
            distance_BN = distance_BN[:, :size]
        wave_BND = torch.cat(self.waves(distance_BN[..., None]), dim=-1)
        key_BHKN = self.project_LHKD[site.layer] @ wave_BND[:, None].transpose(-2, -1)
        return in_pairs(query_BHTK @ key_BHKN, size)
