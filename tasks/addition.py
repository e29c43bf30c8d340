"""Addition of two or more numbers: `[EOS] 6 5 3 + 0 4 9 = 2 0 7 0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.errors import UserError
from algolen.random import Random
from algolen.suffix import fed_back
from algolen.task import PADDING, Layout, Task

SYMBOLS = ("[PAD]", "[EOS]", "+", "=", *"0123456789")
EOS, PLUS, EQUALS, ZERO = 1, 2, 3, 4

EDGES = (
    "0+0",
    "99…9+1",
    "1+99…9",
    "every column sums to 9",
    "sums of 9 above a carry",
    "99…9+99…9",
    "55…5+55…5",
    "10…0+10…0",
    "long+one digit",
    "one digit+long",
)
CHAINS = ("0", "1", "2", "3", "4", "5", "6–9", "10–19", "20+")


@dataclass(frozen=True)
class Addition(Task):
    """Adds numbers of a nominal length L, the number of digits of the longest one.

    The tape is `[EOS] a + b = answer`; the answer and a last `[EOS]` are predicted. Padded, two operands take L digits
    each and the answer L + 1; more operands take as many as the largest possible answer, which is L + 1 again up to
    ten operands. Not padded, no number has leading zeros.

    Coupled ids, with start 1. `least` (the rule of the published code's last version): ids grow from the least
    significant digit of every number, which has id 2; `+` has id 1; so has `=` if the answer is reversed or there are
    more than two operands, and else the id after the answer's most significant digit. `most` (the rule at the time of
    the paper, for two operands): ids grow towards the least significant digit, where all numbers are aligned; a digit
    worth 10^L has id 1, `+` and `=` come after the last digit.

    PROPOSED, where the published code leaves it open: `most` without padding is aligned as if the answer had L + 1
    digits, so that an id follows from the prompt; more than two operands with a plain or unpadded answer keep
    `=` at id 1.
    """

    name = "addition"
    version = 1
    source = "Cho et al. 2024, arXiv 2405.20671; McLeish et al. 2024, arXiv 2405.17399"
    layout = Layout.SUFFIX
    axes = ("operands",)
    test_sets: ClassVar[Mapping[str, str]] = {
        "random": "drawn as in training",
        "edge": "sums that random numbers hardly ever are: zeros, 99…9+1, complementary digits, unequal lengths …",
        "carry": "a carry chain of every length at a random place, all operands of the nominal length",
    }

    operands: Annotated[int, Field(ge=2, le=10, description="how many numbers are added")] = 2
    reverse_answer: Annotated[bool, Field(description="answer with its least significant digit first")] = True
    reverse_operands: Annotated[bool, Field(description="operands with their least significant digit first")] = False
    padded: Annotated[bool, Field(description="numbers zero-padded to a common width")] = True
    operand_lengths: Annotated[
        Literal["equal", "independent"],
        Field(description="equal: all of the nominal length; independent: one of it, the others of 1 up to it"),
    ] = "equal"
    id_direction: Annotated[
        Literal["least", "most"],
        Field(description="coupled ids grow from the least significant digit (published code), or the most (paper)"),
    ] = "least"

    def __post_init__(self) -> None:
        if self.id_direction == "most" and self.operands != 2:
            raise UserError(f"addition.id_direction=most is defined for 2 operands, not {self.operands}")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return SYMBOLS

    @property
    def structures(self) -> frozenset[str]:
        return frozenset({"coupled", "digit", "segment"})

    @property
    def structure_is_causal(self) -> bool:
        return self.padded or self.reverse_answer

    def tape_length(self, length: int) -> int:
        return 1 + self.operands * (length + self._extra_width + 1) + length + 1

    def longest_number(self, length: int) -> int:
        return length + 1

    def largest_coupled_id(self, length: int) -> int:
        return length + self._ids_beyond_length

    @property
    def _extra_width(self) -> int:
        """How much wider than the nominal length an operand is written."""
        return 1 if self.padded and self.operands > 2 else 0

    @property
    def _equals_above_answer(self) -> bool:
        return self.id_direction == "least" and self.operands == 2 and not self.reverse_answer

    @property
    def _ids_beyond_length(self) -> int:
        return 3 if self._equals_above_answer else 2

    # Sampling ---------------------------------------------------------------------------------------------------------

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        return self._batch(lengths_B, self._random_operands(lengths_B, random))

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        if test_set == "edge":
            return self._batch(lengths_B, *self._edge_operands(lengths_B, random))
        if test_set == "carry":
            return self._batch(lengths_B, self._carry_operands(lengths_B, random))
        return super().sample_test(test_set, lengths_B, random)

    def stratum_name(self, test_set: str, stratum: int) -> str:
        return EDGES[stratum] if test_set == "edge" else f"carry chain {CHAINS[stratum]}"

    def _random_operands(self, lengths_B: Tensor, random: Random) -> Tensor:
        """(B, K, W) digits, least significant first, with one more place than the longest operand has."""
        longest_B11 = lengths_B.to(random.device)[:, None, None]
        digits_B1K = longest_B11
        if self.operand_lengths == "independent":
            drawn_B1K = random.fold("length").integers(1, longest_B11 + 1, 1, self.operands)
            full_B11 = random.fold("longest").integers(0, self.operands, 1, 1)
            operand_K = torch.arange(self.operands, device=random.device)
            digits_B1K = torch.where(operand_K == full_B11, longest_B11, drawn_B1K)
        place_W1 = _places(lengths_B, random)[:, None]
        leading_BWK = (place_W1 == digits_B1K - 1) & (digits_B1K > 1)
        # Places come before operands in the draw, so that the width of the batch does not change what is drawn.
        drawn_BWK = random.fold("digits").integers(leading_BWK.long(), 10, len(place_W1), self.operands)
        return (drawn_BWK * (place_W1 < digits_B1K)).transpose(1, 2)

    def _edge_operands(self, lengths_B: Tensor, random: Random) -> tuple[Tensor, Tensor]:
        """Operands of a kind of `EDGES` drawn for each example, and which."""
        cases = edge_cases(_places(lengths_B, random), lengths_B.to(random.device)[:, None], random.fold("content"))
        cases_BCKW = torch.stack([torch.stack(case, dim=1) for case in cases], dim=1)
        kind_B = random.fold("kind").integers(0, len(cases), 1)[:, 0]
        chosen_BKW = cases_BCKW[torch.arange(len(random), device=random.device), kind_B]
        others_BKW = chosen_BKW[:, 2:].expand(-1, self.operands - 2, -1)
        return torch.cat([chosen_BKW[:, :2], others_BKW], dim=1), kind_B

    def _carry_operands(self, lengths_B: Tensor, random: Random) -> Tensor:
        """Operands of full length whose first two generate a carry and pass it on for a number of columns drawn
        uniformly; the others are 0 there."""
        place_W = _places(lengths_B, random)
        length_B1 = lengths_B.to(random.device)[:, None]
        chain_B1 = random.fold("chain").integers(1, length_B1 + 1, 1)
        start_B1 = random.fold("start").integers(0, length_B1 - chain_B1 + 1, 1)
        first_BW, second_BW = _complementary(place_W, length_B1, random.fold("nines"))
        raised_BW = random.fold("first").integers(1, 10, len(place_W))
        to_ten_BW = random.fold("second").integers(10 - raised_BW, 10, len(place_W))
        first_BW = torch.where(place_W == start_B1, raised_BW, first_BW)
        second_BW = torch.where(place_W == start_B1, to_ten_BW, second_BW)
        others = [torch.zeros_like(first_BW)] * (self.operands - 2)
        chain_BKW = torch.stack([first_BW, second_BW, *others], dim=1)
        in_chain_BW = (place_W >= start_B1) & (place_W < start_B1 + chain_B1)
        of_full_length = replace(self, operand_lengths="equal")
        random_BKW = of_full_length._random_operands(lengths_B, random.fold("others"))
        return torch.where(in_chain_BW[:, None], chain_BKW, random_BKW)

    def _batch(self, lengths_B: Tensor, digits_BKW: Tensor, stratum_B: Tensor | None = None) -> Batch:
        """The batch of given operands; the stratum is the longest carry chain unless another is given."""
        answer_BW = digits_BKW[:, 0]
        for operand in range(1, self.operands):
            answer_BW = add(answer_BW, digits_BKW[:, operand])
        if stratum_B is None:
            stratum_B = _bucket(longest_chain(digits_BKW, answer_BW))

        numbers_BNW = torch.cat([digits_BKW, answer_BW[:, None]], dim=1)
        size_B1 = lengths_B.to(digits_BKW.device)[:, None]
        if self.padded:
            widths_BN = torch.cat([size_B1 + self._extra_width] * self.operands + [size_B1 + 1], dim=1)
        else:
            widths_BN = _significant(numbers_BNW)
            # Edge cases can be shorter than the nominal length, and the size has to be a function of the prompt.
            size_B1 = widths_BN[:, :-1].amax(dim=1, keepdim=True)
        longest = int(lengths_B.max())
        tape_BT = self._write(numbers_BNW, widths_BN, self.tape_length(longest) + 1)

        stop_B1 = widths_BN.sum(dim=1, keepdim=True) + (self.operands + 1)
        return fed_back(
            self,
            tape_BT,
            answered_from_B1=stop_B1 - widths_BN[:, -1:] - 1,
            stop_B1=stop_B1,
            size_B1=size_B1,
            stratum_B=stratum_B,
            padded=not self.padded or int(lengths_B.min()) != longest,
            predicted_from=self._shortest_prompt(int(lengths_B.min())),
        )

    def _shortest_prompt(self, shortest: int) -> int:
        """How many tokens stand before `=` at least; operands of edge cases may have one digit if not padded."""
        return self.operands * (shortest + self._extra_width + 1 if self.padded else 2)

    def _write(self, numbers_BNW: Tensor, widths_BN: Tensor, tape: int) -> Tensor:
        """(B, tape) tokens from the first EOS to the last: numbers of given widths, each closed by its separator."""
        batch, numbers, places = numbers_BNW.shape
        place_W = torch.arange(places, device=numbers_BNW.device)
        closed_BN = (widths_BN + 1).cumsum(dim=1)
        least_first_BNW = (closed_BN - widths_BN)[..., None] + place_W
        most_first_BNW = (closed_BN - 1)[..., None] - place_W
        operand_BKW = (least_first_BNW if self.reverse_operands else most_first_BNW)[:, :-1]
        answer_B1W = (least_first_BNW if self.reverse_answer else most_first_BNW)[:, -1:]
        # Places beyond a number's width go to a column behind the tape.
        at_BNW = torch.where(place_W < widths_BN[..., None], torch.cat([operand_BKW, answer_B1W], dim=1), tape)
        closing_N = torch.full((numbers,), PLUS, device=numbers_BNW.device)
        closing_N[-2] = EQUALS
        closing_N[-1] = EOS
        tape_BT = torch.full((batch, tape + 1), PADDING, device=numbers_BNW.device)
        tape_BT[:, 0] = EOS
        tape_BT.scatter_(1, at_BNW.flatten(1), (numbers_BNW + ZERO).flatten(1))
        tape_BT.scatter_(1, closed_BN, closing_N.expand(batch, -1))
        return tape_BT[:, :-1]

    # Structure --------------------------------------------------------------------------------------------------------

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        digit_BT = tokens_BT >= ZERO
        in_sum_BT = tokens_BT > EOS
        separator_BT = in_sum_BT ^ digit_BT
        segment_BT = separator_BT.cumsum(dim=1) - separator_BT.long()
        in_answer_BT = segment_BT >= self.operands
        index_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        answer_B1 = (~in_answer_BT).sum(dim=1, keepdim=True)
        width_B1 = size_BA + 1 if self.padded else (in_answer_BT & digit_BT).sum(dim=1, keepdim=True)

        if self.reverse_operands:
            opened_BT = torch.where(separator_BT, index_T, 0).cummax(dim=1).values
            place_BT = index_T - opened_BT - 1
        else:
            closed_BT = torch.where(separator_BT, index_T, len(index_T)).flip(1).cummin(dim=1).values.flip(1)
            place_BT = closed_BT - 1 - index_T
        into_answer_BT = index_T - answer_B1
        answer_place_BT = into_answer_BT if self.reverse_answer else width_B1 - 1 - into_answer_BT
        place_BT = torch.where(in_answer_BT, answer_place_BT, place_BT)

        if self.id_direction == "least":
            id_BT = torch.where(digit_BT, place_BT + 2, 1)
            if self._equals_above_answer:
                id_BT = torch.where(tokens_BT == EQUALS, width_B1 + 2, id_BT)
        else:
            id_BT = torch.where(digit_BT, size_BA + 1 - place_BT, size_BA + 2)
        # A model that is wrong may go on for longer than any answer; its ids stay within the table.
        id_BT = torch.minimum(id_BT.clamp(min=1), size_BA + self._ids_beyond_length)
        return Structure(coupled_BTA=(id_BT * in_sum_BT)[..., None], digit_BT=digit_BT, segment_BT=segment_BT)

    # References -------------------------------------------------------------------------------------------------------

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        equals = list(symbols).index("=")
        operands = "".join(symbols[1:equals]).split("+")
        answer = str(sum(int(text[::-1] if self.reverse_operands else text) for text in operands))
        if self.padded:
            answer = answer.zfill(len(operands[0]) + (1 if len(operands) == 2 else 0))
        return dict(enumerate([*(answer[::-1] if self.reverse_answer else answer), "[EOS]"], start=equals))

    def chance(self, length: int) -> float:
        """One of all digit strings of the answer's width; without padding, of the shorter width it can have."""
        return 10.0 ** -(length + 1 if self.padded else length)

    def input_blind(self, length: int) -> float:
        """Whatever the other operands are, the one of full length is uniform over its N values, so no answer is right
        for more than one in N. Two operands of equal length reach that bound, by the answer 10^L + 10^(L−1) − 1 (9 for
        one digit), which every first operand completes."""
        return 1 / (10 if length == 1 else 9 * 10 ** (length - 1))


def add(first_BW: Tensor, second_BW: Tensor) -> Tensor:
    """The digits of sums, least significant first; the last place must have room for the carry."""
    sum_BW = first_BW + second_BW
    place_W = torch.arange(sum_BW.shape[-1], device=sum_BW.device)
    # A column of sum 9 hands on the carry it gets, so the nearest other column at or below it decides; the cumulative
    # maximum finds that column, whose own carry rides in the lowest bit.
    decides_BW = torch.where(sum_BW == 9, 0, 2 * place_W + (sum_BW >= 10))
    carry_BW = decides_BW.cummax(dim=-1).values & 1
    return sum_BW - 10 * carry_BW + torch.nn.functional.pad(carry_BW[..., :-1], (1, 0))


def longest_chain(digits_BKW: Tensor, answer_BW: Tensor) -> Tensor:
    """(B,) columns of the longest carry chain: one that generates a carry by its digits alone and those after it whose
    carry is larger for the carry they get."""
    column_BW = digits_BKW.sum(dim=1)
    # Carries into a column are below 10 (ten operands at most), so one turns it over just where the answer's digit is
    # smaller than the column's own.
    extends_BW = answer_BW < column_BW % 10
    place_W = torch.arange(column_BW.shape[1], device=column_BW.device)
    since_BW = place_W - torch.where(extends_BW, 0, place_W).cummax(dim=1).values
    return ((since_BW + 1) * (extends_BW | (column_BW >= 10))).amax(dim=1)


def _bucket(chain_B: Tensor) -> Tensor:
    """The index into `CHAINS`."""
    return chain_B.clamp(max=6) + (chain_B >= 10) + (chain_B >= 20)


def _significant(numbers_BNW: Tensor) -> Tensor:
    """(B, N) digits of each number without leading zeros; one for 0."""
    place_W = torch.arange(numbers_BNW.shape[-1], device=numbers_BNW.device)
    return (place_W * (numbers_BNW > 0)).amax(dim=-1) + 1


def _places(lengths_B: Tensor, random: Random) -> Tensor:
    return torch.arange(int(lengths_B.max()) + 1, device=random.device)


def _complementary(place_W: Tensor, length_B1: Tensor, random: Random) -> tuple[Tensor, Tensor]:
    """Pairs of random numbers of full length whose digits sum to 9 in every column."""
    leading_BW = ((place_W == length_B1 - 1) & (length_B1 > 1)).long()
    first_BW = random.integers(leading_BW, 10 - leading_BW, len(place_W))
    inside_BW = place_W < length_B1
    return first_BW * inside_BW, (9 - first_BW) * inside_BW


def edge_cases(place_W: Tensor, length_B1: Tensor, random: Random) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
    """For each of `EDGES` the digits of the first operand, of the second, and of any other."""
    inside_BW = (place_W < length_B1).long()
    zero_BW = torch.zeros_like(inside_BW)
    one_BW = (place_W == 0) * inside_BW
    top_BW = (place_W == length_B1 - 1).long()
    first_BW, second_BW = _complementary(place_W, length_B1, random.fold("nines"))
    bumped_BW = place_W == random.fold("bump").integers(0, length_B1, 1)
    full_BW = random.fold("full").integers(top_BW * (length_B1 > 1), 10, len(place_W)) * inside_BW
    digit_BW = one_BW * random.fold("digit").integers(0, 10, 1)
    return (
        (zero_BW, zero_BW, zero_BW),
        (9 * inside_BW, one_BW, zero_BW),
        (one_BW, 9 * inside_BW, zero_BW),
        (first_BW, second_BW, zero_BW),
        # The bump goes to the second number where the first has no room for it.
        (first_BW + bumped_BW * (first_BW < 9), second_BW + bumped_BW * (first_BW == 9), zero_BW),
        (9 * inside_BW, 9 * inside_BW, 9 * inside_BW),
        (5 * inside_BW, 5 * inside_BW, 5 * inside_BW),
        (top_BW, top_BW, top_BW),
        (full_BW, digit_BW, zero_BW),
        (digit_BW, full_BW, zero_BW),
    )
