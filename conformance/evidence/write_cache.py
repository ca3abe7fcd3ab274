"""Writing into a key-value cache: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, cases_of, gradient, reals
from .tools.deviation import Function, Real, Wrap, after, argument, around, before, deviations_of, narrowed
from .tools.hints import NEGATIVE_INDICES

OP = "write_cache"

SIZES: dict[str, Any] = {"N": 5, "B": 4, "H": 2, "D": 3, "spare": 0}
KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"N": 67, "B": 16, "H": 3, "D": 64, "spare": 0}

_cache = cases_of(OP)


def _inputs(name: str, cache: tuple[int, ...], slots: Any, bits: int = 8, rows: tuple[int, ...] | None = None) -> Any:
    """Return a cache of a shape, in which no number is 0, and a row for each slot."""
    shape = (len(slots), *cache[2:]) if rows is None else rows
    return {
        "cache": reals(f"cache {name} cache", *cache, bits=bits),
        "rows": reals(f"cache {name} rows", *shape, bits=bits),
        "slots": np.asarray(slots, dtype=np.int64),
    }


def _case(
    name: str, cache: tuple[int, ...], slots: Any, comment: str = "", *, bits: int = 8,
    rows: tuple[int, ...] | None = None, padded: bool | None = None, **rest: Any,
) -> Case:  # fmt: skip
    return _cache(name, {} if padded is None else {"padded": padded}, _inputs(name, cache, slots, bits, rows), comment, **rest)


def _gradient(name: str, cache: tuple[int, ...], slots: Any, *, bits: int = 8, view: str = "") -> Case:
    return gradient(OP, name, _inputs(f"gradient {name}", cache, slots, bits), {"out": cache}, bits=bits, view=view)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    decode = (35, 18, 3, 52, 64)  # one token of each of five sequences
    return (
        _case("pages/small", (3, 4, 2, 3), (5, 0, 11, 7), tier="smoke"),
        _case("pages/24-bits", (4, 3, 2, 5), (10, 2, 3, 1, 7), bits=24),
        _case("pages/53-bits", (2, 5, 1, 4), (9, 4, 3), bits=53),
        _case("pages/one-slot", (6, 1, 2, 3), (4, 0, 5), "pages of one slot"),
        _case("pages/one-page", (1, 7, 2, 3), (6, 1, 3), "a contiguous cache of one sequence"),
        _case("pages/contiguous", (3, 10, 2, 4), (7, 17, 27), "a token at place 7 of each of three sequences"),
        _case("skip/first-slot", (3, 4, 2, 3), (6, 0, -1), "the first slot is written too"),
        _case("heads/five", (2, 3, 5, 2), (4, 1, 0)),
        _case("heads/one", (4, 2, 1, 6), (7, 2, 4, -1)),
        _case("models/pages-of-16", (5, 16, 2, 3), decode, "vLLM's pages; narrower"),
        _case("models/pages-of-64", (2, 64, 1, 6), (63, 64, 127, 1, -1), "FlashMLA's pages; narrower"),
        _case("models/mla", (2, 2, 1, 576), (3, 0), "512 channels of the latent vector and 64 that rotate"),
        _case("models/head-128", (2, 3, 2, 128), (4, 1, -1), bits=24),
        _case("empty/channels", (2, 3, 2, 0), (4, 1)),
        _case("empty/pages", (0, 4, 2, 3), (-1, -1), "no pages yet"),
        _case("forms/strided-heads", (2, 3, 4, 6), (5, 0, 3), form="non-contiguous"),
        _case("forms/one-token-first", (3, 2, 1, 1), (0,)),
        _case("refused/heads", (2, 3, 2, 4), (4, 1), "one head would broadcast", rows=(2, 1, 4), kind="reject"),
        _case("padded/two-of-five", (3, 4, 2, 3), (9, 2), "rows 2 to 4 have no slot", rows=(5, 2, 3), padded=True),
        _case("padded/skipped", (2, 5, 3, 4), (7, -1, 0), rows=(4, 3, 4), padded=True, bits=24),
        _case("padded/none", (2, 3, 1, 5), (), "no slots", rows=(3, 1, 5), padded=True),
        _case("padded/as-many", (4, 3, 2, 2), (10, 1, 6), padded=True),
        _case("refused/rows", (2, 3, 2, 4), (4, 1, 3), "two rows, three slots", rows=(2, 2, 4), padded=True, kind="reject"),
        _case("refused/slots", (2, 3, 2, 4), (4, 1), "three rows, two slots", rows=(3, 2, 4), kind="reject"),
        _case("refused/three-axes", (6, 2, 4), (4, 1), "a cache without pages", rows=(2, 2, 4), kind="reject"),
        _gradient("pages", (2, 2, 1, 2), (3, 0)),
        _gradient("skip", (2, 3, 2, 1), (4, -1, 1)),
        _gradient("24-bits", (3, 1, 1, 3), (2, -1), bits=24),
        _gradient("strided", (2, 2, 2, 2), (1, 2, -1), view="non-contiguous"),
    )


ADDRESS = "Slot s is place s mod B of page s // B."
EACH_SLOT = "Read the slot of each token."
PADDING = "A token with slot -1 is skipped: nothing is written for it."
PARTS = "Compare what a program writes with the sizes: tokens, heads and channels, also beyond the last whole tile."


def _slots(change: Callable[..., Any]) -> Wrap:
    """Return a wrap that writes into other slots: `change` takes slots of at least 0, the pages and their size."""

    def changed(cache: Real, rows: Real, slots: Any, /, **options: Any) -> Any:
        pages, size = cache.shape[:2]
        moved = np.asarray(change(slots, pages, size))
        inside = (slots >= 0) & (moved >= 0) & (moved < pages * size)
        return (cache, rows, np.where(inside, moved, -1)), options

    return before(changed)


def _skipped(slot: Callable[[Real], int]) -> Wrap:
    """Return a wrap that writes padding into a slot."""

    def changed(cache: Real, rows: Real, slots: Any, /, **options: Any) -> Any:
        return (cache, rows, np.where(slots < 0, slot(cache), slots) if cache.size else slots), options

    return before(changed)


@around
def _closed_up(function: Function, cache: Real, rows: Real, slots: Any, /, **options: Any) -> Real:
    """Slots without padding belong to the first rows."""
    used = slots[slots >= 0]
    return function(cache, rows, np.concatenate([used, np.full(slots.size - used.size, -1)]).astype(slots.dtype), **options)


def _tokens(kept: Callable[[int], Any]) -> Wrap:
    """Return a wrap that writes some tokens alone."""

    def changed(cache: Real, rows: Real, slots: Any, /, **options: Any) -> Any:
        return (cache, rows, np.where(kept(slots.size), slots, -1)), options

    return before(changed)


def _only(index: Callable[[tuple[int, ...]], Any]) -> Wrap:
    """Return a wrap that writes a part of every row: `index` takes the cache's shape."""

    def change(out: Real, cache: Real, *rest: Any, **options: Any) -> Real:
        kept = np.array(cache)
        kept[index(cache.shape)] = out[index(cache.shape)]
        return kept

    return after(change)


@around
def _heads_before_slots(function: Function, cache: Real, rows: Real, slots: Any, /, **options: Any) -> Real:
    """The memory of a page is taken for (heads, slots, channels)."""
    pages, size, heads, width = cache.shape
    other = cache.reshape(pages, heads, size, width).swapaxes(1, 2)
    return function(other, rows, slots, **options).swapaxes(1, 2).reshape(cache.shape)


@around
def _spare(function: Function, cache: Real, rows: Real, slots: Any, /, **options: Any) -> Real:
    """Rows without a slot take the first slots that are free."""
    free = np.setdiff1d(np.arange(cache.shape[0] * cache.shape[1]), slots)[: len(rows) - len(slots)]
    return function(cache, rows, np.concatenate([slots, free]).astype(slots.dtype), **options)


def _heads_as_tokens(cache: Real, rows: Real, slots: Any, /, **options: Any) -> Any:
    tokens, heads, width = rows.shape
    return (cache, rows.reshape(heads, tokens, width).swapaxes(0, 1), slots), options


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("cache-slot-late", "every row is one slot too far", _slots(lambda s, n, b: s + 1), hint=ADDRESS),
    _deviation("cache-slot-early", "every row is one slot too early", _slots(lambda s, n, b: s - 1), hint=ADDRESS),
    _deviation("cache-slots-ignored", "rows are written one after the other, whatever their slots",
               _slots(lambda s, n, b: np.arange(s.size)), hint=EACH_SLOT),
    _deviation("cache-slots-from-first", "rows are written one after the other from the first slot on",
               _slots(lambda s, n, b: s[:1] + np.arange(s.size) if s.size else s), hint=EACH_SLOT),
    _deviation("cache-page-exchanged", "the page is s mod N and the place s // N",
               _slots(lambda s, n, b: s % n * b + s // n), hint=ADDRESS),
    _deviation("cache-page-of-16", "the page is s // 16 and the place s mod 16, whatever the size of a page",
               _slots(lambda s, n, b: np.where(s % 16 < b, s // 16 * b + s % 16, -1)), hint=ADDRESS),
    _deviation("cache-page-longer", "a page is taken to be one slot longer than it is",
               _slots(lambda s, n, b: np.where(s % (b + 1) < b, s // (b + 1) * b + s % (b + 1), -1)), hint=ADDRESS),
    _deviation("cache-first-page", "rows are written into the first page", _slots(lambda s, n, b: s % b), hint=ADDRESS),
    _deviation("cache-padding-last", "padding is written into the last slot", _skipped(lambda c: c.shape[0] * c.shape[1] - 1),
               hint=f"{PADDING} {NEGATIVE_INDICES}", seen_in="vLLM#43810"),
    _deviation("cache-padding-first", "padding is written into the first slot", _skipped(lambda c: 0), hint=PADDING),
    _deviation("cache-stops-at-padding", "nothing is written after the first padding",
               before(lambda cache, rows, slots, /, **o: ((cache, rows, np.where(np.cumsum(slots < 0) > 0, -1, slots)), o)),
               hint=PADDING),
    _deviation("cache-padding-closed-up", "slots are taken without padding, rows with it", _closed_up, hint=PADDING),
    _deviation("cache-cleared", "slots that no token has become 0", argument(0, np.zeros_like),
               hint="Write into the cache that is given, not into a new one."),
    _deviation("cache-not-written", "nothing is written", after(lambda out, cache, *rest, **options: cache),
               hint="Look for a copy that is written, or a null pointer.", seen_in="vLLM#54851"),
    _deviation("cache-added", "rows are added to what the slots hold",
               after(lambda out, cache, *rest, **options: np.where(out == cache, cache, out + cache)),
               hint="Store, do not accumulate."),
    _deviation("cache-last-rows", "with fewer slots than rows, the slots are those of the last rows",
               before(lambda cache, rows, slots, /, **o: ((cache, rows[len(rows) - len(slots) :], slots), o)), hint=EACH_SLOT),
    _deviation("cache-spare-written", "rows beyond the slots are written into slots that no row has", _spare, hint=EACH_SLOT),
    _deviation("cache-first-head", "only head 0 is written", _only(lambda shape: np.s_[:, :, :1]), hint=PARTS),
    _deviation("cache-last-head", "the last head is not written", _only(lambda shape: np.s_[:, :, : shape[2] - 1]), hint=PARTS),
    _deviation("cache-first-half", "only the first half of the channels is written",
               _only(lambda shape: np.s_[..., : (shape[3] + 1) // 2]), hint=PARTS, seen_in="sgl-project/sglang#22868"),
    _deviation("cache-last-token", "the last token is not written", _tokens(lambda count: np.arange(count) < count - 1),
               hint=PARTS),
    _deviation("cache-whole-tiles", "tokens beyond a multiple of four are not written",
               _tokens(lambda count: np.arange(count) < count // 4 * 4), hint=PARTS),
    _deviation("cache-heads-first", "pages are written as (heads, slots, channels)", _heads_before_slots,
               hint="Compare NHD and HND: which axis comes first in a page."),
    _deviation("cache-heads-as-tokens", "rows are read as (heads, tokens, channels)", before(_heads_as_tokens),
               hint="Compare the strides of tokens and heads."),
    _deviation("cache-rows-normalized", "rows are divided by the root of the mean of their squares before they are written",
               argument(1, lambda rows: rows / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + 1e-6)),
               hint="Values are written as they are: normalize queries and keys alone."),
    *(
        _deviation(f"cache-through-{dtype}", f"rows pass through {dtype}", argument(1, narrowed(dtype)),
                   hint="Copy rows bit for bit where cache and rows have one dtype.")
        for dtype in ("bfloat16", "float16")
    ),
)  # fmt: skip
