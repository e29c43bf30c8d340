"""The contract of a position encoding.

An encoding is one object with small optional hooks; override the ones you need and leave the rest. Hooks are called in
this order:

    map_ids, draw       random ids and noise: no parameters, outside differentiation and stacking
    prepare             tables for the whole forward pass; everything from here on is a pure function
    embed               added to the token embeddings
    and in every layer's attention:
    qk_input            added to what queries and keys are projected from
    rotate              turns queries and keys
    expand_heads        more heads than were projected
    logits              replaces the scaled q·k
    logit_scale         multiplies the logits: log n, temperatures
    bias                added after the scale; may depend on content
    refine              sees scaled logits and summed biases
    mask                which keys a query may see
    layer_end           the state that the next layer sees
    and once at the end:
    aux_loss            added to the training loss

While no hook that touches logits (`logits`, `bias`, `refine`, `mask`, `layer_end`) is in play, attention takes the
fused kernel; otherwise plain matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor, nn

from algolen.batch import Batch
from algolen.errors import Refusal
from algolen.initialisation import Initialiser
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the model an encoding sits in."""

    layers: int
    width: int
    heads: int
    attention_heads: int = 0
    """How many heads attend, where encodings make more of the `heads` projected ones; biases have one each."""

    def __post_init__(self) -> None:
        if not self.attention_heads:
            object.__setattr__(self, "attention_heads", self.heads)

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, slots=True)
class Ids:
    """What is known about a stream of position ids, at one nominal length, before anything is drawn.

    axes: A of (B, T, A). largest: the largest id that can occur. increasing: whether every token's id is larger than
    the one before, so that distances to the past are positive. integers: whether ids are whole numbers.
    """

    axes: int
    largest: int
    increasing: bool
    integers: bool = True


class Drawn(NamedTuple):
    """The draws of one encoding for a batch: the stream of ids it reads and what it drew itself (() for nothing)."""

    ids_BTA: Tensor
    noise: Any = ()


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the model an attention hook is called.

    x_BTD: the block's input after its norm. q_BHTK, k_BHTK: queries and keys as projected, or as rotated for the hooks
    after `rotate` (K is the width of a head). logits_BHTT: scaled (and by `logit_scale` multiplied) logits, not yet
    masked, and bias_BHTT: summed biases; both only for the hooks that come after them. h_BTD: the block's output, for
    `layer_end`. mask_TT: bool, True where a query (row) may see a key (column); (B, 1, T, T) where padding matters;
    None on the fused path, which no hook sees. causal: whether the model is. ids_BTA: the stream of ids the encoding
    reads. ctx: what its `prepare` (or last `layer_end`) returned. layer: which layer, loop: which pass through the
    layers where they are looped, from 0. scale: what q·k is multiplied by, 1/√K times the logit multiplier.
    """

    x_BTD: Tensor
    ids_BTA: Tensor
    mask_TT: Tensor | None
    causal: bool
    ctx: Any
    layer: int
    loop: int = 0
    scale: float = 1.0
    q_BHTK: Tensor | None = None
    k_BHTK: Tensor | None = None
    logits_BHTT: Tensor | None = None
    bias_BHTT: Tensor | None = None
    h_BTD: Tensor | None = None


@dataclass(frozen=True)
class NoOptions:
    """The options of an encoding that has none."""


class Encoding(nn.Module):
    """Base class of position encodings: every hook at its neutral value.

    Class attributes say what tables and checks need to know:

    name: how users call it. version: raised when what it computes changes. kind: one word for listings, such as
    "embedding", "ids", "rotary", "bias". paper: the source. status: "published", or "unconfirmed" or "proposed" where
    the reference says so. needs: the parts of `Structure` it reads. causal_only: refuses bidirectional attention.
    reads_ids: whether it looks at the stream of ids at all. by_place: goes by places on the tape where one would expect
    it to read ids, so that beside a map the encoding that does has to be named. maps_ids: whether it overrides
    `map_ids`; found out by itself. reader: for encodings that only map ids, the encoding that reads them where the user
    names none. replaces_ids: a map that does not look at the ids it is given. draws_at_test: whether positions are
    drawn at test as well (see `Phase`).

    Options: a frozen dataclass, the encoding's options with defaults.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    kind: ClassVar[str]
    paper: ClassVar[str]
    status: ClassVar[Literal["published", "unconfirmed", "proposed"]] = "published"
    needs: ClassVar[frozenset[str]] = frozenset()
    causal_only: ClassVar[bool] = False
    reads_ids: ClassVar[bool] = False
    by_place: ClassVar[bool] = False
    maps_ids: ClassVar[bool] = False
    replaces_ids: ClassVar[bool] = False
    draws_at_test: ClassVar[bool] = False
    reader: ClassVar[str | None] = None
    Options: ClassVar[type] = NoOptions

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.maps_ids = cls.map_ids is not Encoding.map_ids

    def __init__(self, options: Any, shape: Shape, init: Initialiser) -> None:
        super().__init__()
        self.options = options
        self.shape = shape

    # Before anything is built -----------------------------------------------------------------------------------------

    @classmethod
    def resolve(cls, options: Any, maps: tuple[tuple[type[Encoding], Any], ...]) -> Any:
        """The options with every value that depends on others filled in; `maps` are the id maps whose stream it
        reads, in order, each with its resolved options."""
        return options

    @classmethod
    def map_range(cls, options: Any, ids: Ids, task: Task, length: int) -> Ids:
        """What `map_ids` makes of a stream at that nominal length, over all starts and draws.

        Raises Refusal, with the option to change, if ids would not fit.
        """
        return ids

    @classmethod
    def accept(cls, options: Any, ids: Ids, task: Task, length: int) -> None:
        """Raises Refusal if the encoding cannot read such a stream."""

    @classmethod
    def check_attention(cls, options: Any, causal: bool) -> None:
        """Raises Refusal if the encoding, or an option of it, is for the other kind of attention."""
        if cls.causal_only and not causal:
            raise Refusal(f"{cls.name} is for causal attention; with bidirectional attention order is lost")

    @classmethod
    def check_shape(cls, options: Any, shape: Shape) -> None:
        """Raises Refusal if the encoding does not fit into a model of that shape."""

    @classmethod
    def check_task(cls, options: Any, task: Task, length: int) -> None:
        """Raises Refusal if streams of its own would not fit at that nominal length."""

    @classmethod
    def attention_heads(cls, options: Any, heads: int) -> int:
        """How many heads attend, of `heads` ones; see `expand_heads`."""
        return heads

    @classmethod
    def ceiling(cls, options: Any) -> int | None:
        """The largest id the encoding can read or give; None if there is no limit."""
        return None

    @classmethod
    def reveals_answer(cls, options: Any, task: Task) -> str | None:
        """Why one teacher-forced pass would not equal greedy decoding, or None if it does."""
        return None

    # Draws: no parameters ---------------------------------------------------------------------------------------------

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        """The stream of ids handed on to the encodings after this one."""
        return ids_BTA

    def draw(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Any:
        """Ids of a stream of its own, noise, boundaries: a tensor or a tuple of tensors; () for nothing."""
        return ()

    def streams(self, drawn: Drawn) -> dict[str, Tensor]:
        """The part of its draws that is a number for every token, for `algolen sample` to show: (B, T) or (B, T, A),
        by the name of its row. What the model computes does not depend on it."""
        return {}

    # Pure from here on ------------------------------------------------------------------------------------------------

    def prepare(self, batch: Batch, drawn: Drawn) -> Any:
        """What the other hooks need in this forward pass: tables, parameters. Not changed afterwards."""
        return None

    def embed(self, h_BTD: Tensor, drawn: Drawn, ctx: Any) -> Tensor:
        """The token embeddings with the encoding added."""
        return h_BTD

    def qk_input(self, hq_BTD: Tensor, hk_BTD: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        """What queries and keys are projected from."""
        return hq_BTD, hk_BTD

    def rotate(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned."""
        return q_BHTK, k_BHTK

    def expand_heads(self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values for more heads than were projected; see `attention_heads`."""
        return q_BHTK, k_BHTK, v_BHTK

    def logits(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site) -> Tensor | None:
        """Logits (B, H, T, T) in place of the scaled q·k, scaled by the encoding itself; None to leave them."""
        return None

    def logit_scale(self, q_BHTK: Tensor, site: Site) -> Tensor | None:
        """A factor of the logits, broadcastable to (B, H, T, 1); None for 1."""
        return None

    def bias(self, site: Site) -> Tensor | None:
        """Added to the logits, broadcastable to (B, H, T, T), static or read off `site.logits_BHTT`; None for 0.

        A bias that gates keys has to mask its gates with `site.mask_TT` itself, or the future leaks into it.
        """
        return None

    def refine(self, logits_BHTT: Tensor, site: Site) -> Tensor:
        """The sum of scaled logits (`site.logits_BHTT`) and biases (`site.bias_BHTT`), refined."""
        return logits_BHTT

    def mask(self, site: Site) -> Tensor | None:
        """bool, broadcastable to (B, H, T, T), True where a query may see a key; joined to the others by and."""
        return None

    def layer_end(self, site: Site, attention_BHTT: Tensor) -> Any:
        """The ctx for the next layer, from this one's attention and its output `site.h_BTD`; not asked in the last one
        of the last pass."""
        return site.ctx

    def aux_loss(self, ctx: Any) -> Tensor | None:
        """Added to the training loss."""
        return None

    # After training ---------------------------------------------------------------------------------------------------

    def extend(self, trained_to: int, test_to: int) -> Encoding:
        """A test-time extension of a trained encoding from `trained_to` to `test_to` positions (not nominal lengths);
        shares its parameters. Itself if there is nothing to extend."""
        return self
