"""Position ids against counting by hand, against transformers, and on every array library."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import Library
from hypothesis import given
from hypothesis import strategies as st

from posref import positions

MASKS = [
    [[1, 1, 1, 1]],
    [[0, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]],
    [[0], [1]],
]


def counted(row: list[int], padding: int) -> list[int]:
    return [sum(row[: t + 1]) - 1 if row[t] else padding for t in range(len(row))]


@pytest.mark.parametrize(
    "padding", [0, pytest.param(1, marks=pytest.mark.thorough), pytest.param(-7, marks=pytest.mark.thorough)]
)
def test_masks_are_counted(library: Library, padding: int) -> None:
    for mask in MASKS:
        expected = [counted(row, padding) for row in mask]
        for given_mask in (np.asarray(mask), np.asarray(mask, dtype=bool)):
            found = positions.from_mask(library.array(given_mask), padding=padding)
            assert library.host(found).tolist() == expected, mask


def test_tokens_without_any_and_none(library: Library) -> None:
    found = positions.from_tokens(library.array([[1, 1, 5, 6], [5, 6, 1, 1]]), padding_idx=1)
    assert library.host(found).tolist() == [[1, 1, 2, 3], [2, 3, 1, 1]]
    assert positions.from_mask(np.zeros((2, 0), dtype=np.int64), padding=0).shape == (2, 0)


@pytest.mark.thorough
def test_roberta_is_transformers_roberta() -> None:
    import torch
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

    ids = torch.tensor([[0, 31414, 232, 2, 1, 1], [0, 9, 9, 9, 9, 2]])
    theirs = RobertaEmbeddings.create_position_ids_from_input_ids(ids, padding_idx=1)
    assert positions.from_tokens(ids, padding_idx=1).tolist() == theirs.tolist()


@given(st.lists(st.integers(0, 9), max_size=6))
def test_packed_sequences_begin_anew(lengths: list[int]) -> None:
    found = positions.packed(np.cumsum([0, *lengths]))
    assert found.tolist() == [i for n in lengths for i in range(n)]


@given(ranks=st.integers(1, 8), chunk=st.integers(0, 5))
def test_shards_hold_every_position_once_and_equal_causal_work(ranks: int, chunk: int) -> None:
    shards = [positions.zigzag(2 * ranks * chunk, rank=r, ranks=ranks).tolist() for r in range(ranks)]
    assert sorted(p for shard in shards for p in shard) == list(range(2 * ranks * chunk))
    assert len({sum(shard) for shard in shards}) <= 1


def test_decoding_continues_what_a_mask_counts() -> None:
    mask = np.asarray([[0, 0, 1, 1], [1, 1, 1, 1]])
    whole = np.concatenate([mask, np.ones((2, 3), dtype=mask.dtype)], axis=1)
    counts = positions.from_mask(whole, padding=0)[:, 4:]
    assert np.array_equal(positions.decode(mask.sum(axis=1), 3), counts)


def test_caches_that_lost_keys() -> None:
    kept = np.asarray([[0, 1, 40, 41], [0, 2, 3, 9]])
    assert positions.evicted(kept, reindex=False).tolist() == kept.tolist()
    assert positions.evicted(kept, reindex=True).tolist() == [[0, 1, 2, 3]] * 2


def test_grids_and_centres() -> None:
    assert positions.grid(2, 1, 2).tolist() == [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]
    assert positions.grid(0, 3).shape == (2, 0)
    assert positions.centred((2, 4))[1].tolist() == [-0.75, -0.25, 0.25, 0.75] * 2
    assert positions.centred((2, 4))[0].tolist() == [-0.5] * 4 + [0.5] * 4


def test_grids_of_other_sizes(library: Library) -> None:
    there = positions.scaled((2, 4), (2, 6), xp=library.xp)
    assert library.host(there)[1].tolist() == [0.0, 1.5, 3.0, 4.5] * 2
    assert positions.centred((2, 4), by="max")[0].tolist() == [-0.75] * 4 + [-0.25] * 4
    assert positions.centred((2, 4), by="min")[1].tolist() == [-0.5, 0.5, 1.5, 2.5] * 2
    cells = library.array(positions.grid(1, 2) + 1)
    assert library.host(positions.with_origin(cells, tokens_before=1, tokens_after=2)).tolist() == [
        [0, 1, 1, 0, 0],
        [0, 1, 2, 0, 0],
    ]


PROMPTS = [
    [("text", 3), ("image", 2, 3), ("text", 4)],
    [("image", 4, 1), ("text", 1), ("image", 2, 2), ("text", 5)],
    [("text", 2), ("video", 3, 2, 2, 1.0), ("text", 3)],
    [("text", 1), ("video", 2, 2, 4, 1.0), ("text", 2), ("image", 3, 2), ("text", 1)],
    [("text", 6)],
]


@pytest.mark.thorough
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("interval", [1.0, 2.0, 0.5])
def test_prompts_are_those_of_transformers(prompt: list[tuple[Any, ...]], interval: float) -> None:
    import torch
    from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

    merge = 2
    prompt = [(*s[:4], interval) if s[0] == "video" else s for s in prompt]
    kinds: list[int] = []
    for s in prompt:
        kinds += {"text": [0] * s[1], "image": [1] * int(np.prod(s[1:3])), "video": [2] * int(np.prod(s[1:4]))}[s[0]]
    images = [(1, s[1] * merge, s[2] * merge) for s in prompt if s[0] == "image"]
    videos = [(s[1], s[2] * merge, s[3] * merge) for s in prompt if s[0] == "video"]
    model = SimpleNamespace(
        config=SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=merge, tokens_per_second=1))
    )
    model.get_vision_position_ids = Qwen2_5_VLModel.get_vision_position_ids.__get__(model)
    theirs, _ = Qwen2_5_VLModel.get_rope_index(
        model,
        torch.zeros((1, len(kinds)), dtype=torch.int64),
        torch.tensor([kinds]),
        torch.tensor(images) if images else None,
        torch.tensor(videos) if videos else None,
        second_per_grid_ts=torch.tensor([interval] * len(videos)) if videos else None,
    )
    assert positions.multimodal(prompt, after="spatial").tolist() == theirs[:, 0].tolist()


def test_what_follows_a_long_video() -> None:
    prompt = [("video", 3, 1, 2, 2.0), ("text", 1)]
    assert positions.multimodal(prompt, after="max")[:, -1].tolist() == [5, 5, 5]
    assert positions.multimodal(prompt, after="spatial")[:, -1].tolist() == [2, 2, 2]


@pytest.mark.parametrize(("interval", "frames", "last"), [(0.7, 11, 6), (1 / 3, 4, 0), (0.1, 11, 1), (1.1, 11, 11)])
def test_times_are_rounded_down_exactly(interval: float, frames: int, last: int) -> None:
    """Not the product in float64, which is rounded up to a whole number: 0.7 and 1/3 are below what they are written for."""
    assert positions.multimodal([("video", frames, 1, 1, interval)], after="max")[0, -1] == last


def test_host_numbers_go_where_they_are_wanted(library: Library) -> None:
    for made in (
        positions.grid(2, 3, xp=library.xp),
        positions.zigzag(8, rank=1, ranks=2, xp=library.xp),
        positions.multimodal(PROMPTS[0], after="max", xp=library.xp),
        positions.centred((2, 3), xp=library.xp),
    ):
        assert type(made) is type(library.array(np.zeros(2)))


# two documents of 8 and 4 tokens on two ranks, as Megatron-core, SGLang and torch share them out
SHARDS = [
    ("rank", "document", [[0, 1, 6, 7, 0, 3], [2, 3, 4, 5, 1, 2]]),
    ("rank", "pack", [[0, 1, 6, 7, 8, 11], [2, 3, 4, 5, 9, 10]]),
    ("halves", "document", [[0, 1, 0, 6, 7, 3], [2, 3, 1, 4, 5, 2]]),
    ("document", "pack", [[0, 1, 6, 7, 2, 3], [4, 5, 8, 11, 9, 10]]),
    ("document", "document", [[0, 1, 6, 7, 2, 3], [4, 5, 0, 3, 1, 2]]),
    ("striped", "document", [[0, 2, 4, 6, 0, 2], [1, 3, 5, 7, 1, 3]]),
]


@pytest.mark.parametrize(("order", "within", "expected"), SHARDS)
def test_shards_of_packed_sequences(library: Library, order: Any, within: Any, expected: list[list[int]]) -> None:
    starts = library.array(np.asarray([0, 8, 12]))
    for rank in range(2):
        found = positions.packed_shard(starts, rank=rank, ranks=2, split=order, within=within)
        assert library.host(found).tolist() == expected[rank]


def test_chunks_with_a_token_more() -> None:
    starts = np.asarray([0, 11])
    shards = [positions.packed_shard(starts, rank=r, ranks=2, split="halves", within="pack").tolist() for r in range(2)]
    assert shards == [[0, 1, 2, 9, 10], [3, 4, 5, 6, 7, 8]]


@given(lengths=st.lists(st.integers(0, 3), max_size=4), ranks=st.integers(1, 4), order=st.sampled_from(["rank", "document"]))
def test_packed_shards_hold_every_token_once(lengths: list[int], ranks: int, order: Any) -> None:
    starts = np.cumsum([0, *(2 * ranks * n for n in lengths)])
    shards = [positions.packed_shard(starts, rank=r, ranks=ranks, split=order, within="pack").tolist() for r in range(ranks)]
    assert sorted(p for shard in shards for p in shard) == list(range(starts[-1]))
    assert len({len(shard) for shard in shards}) == 1


@given(length=st.integers(0, 9), ranks=st.integers(1, 4))
def test_contiguous_and_striped_shards(length: int, ranks: int) -> None:
    whole = [p for r in range(ranks) for p in positions.contiguous(ranks * length, rank=r, ranks=ranks).tolist()]
    assert whole == list(range(ranks * length))
    stripes = [positions.striped(length, rank=r, ranks=ranks).tolist() for r in range(ranks)]
    assert stripes == [[p for p in range(length) if p % ranks == r] for r in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_shards_are_those_of_torch(ranks: int) -> None:
    from torch.distributed.tensor.experimental._context_parallel import _load_balancer as balancers

    whole = balancers._HeadTailLoadBalancer(16, ranks, "cpu")._generate_indices()[0].tolist()
    assert whole == [p for r in range(ranks) for p in positions.zigzag(16, rank=r, ranks=ranks).tolist()]
    theirs = balancers._PerDocumentHeadTailLoadBalancer([[16, 8]], ranks, "cpu")._generate_indices()[0].tolist()
    starts = np.asarray([0, 16, 24])
    shards = [positions.packed_shard(starts, rank=r, ranks=ranks, split="document", within="pack") for r in range(ranks)]
    assert theirs == [p for shard in shards for p in shard.tolist()]


def test_sequences_found_from_positions(library: Library) -> None:
    rows = library.array(np.asarray([[0, 1, 2, 0, 1], [0, 0, 0, 1, 2], [5, 6, 7, 8, 9]]))
    assert library.host(positions.documents(rows)).tolist() == [[0, 0, 0, 1, 1], [0, 1, 2, 2, 2], [0, 0, 0, 0, 0]]
    assert positions.documents(np.zeros((2, 0), dtype=np.int64)).shape == (2, 0)


@pytest.mark.thorough
def test_sequences_are_those_of_transformers() -> None:
    import torch
    from transformers.masking_utils import find_packed_sequence_indices

    rows = torch.tensor([[0, 1, 2, 0, 1, 0, 0], [0, 0, 0, 1, 2, 5, 6], [3, 4, 0, 1, 1, 1, 2]])
    assert positions.documents(rows).tolist() == find_packed_sequence_indices(rows).tolist()


def test_trees_of_drafts(library: Library) -> None:
    parents = np.asarray([[-1, 0, 0, 1, 1, 2, 5], [-1, 0, 1, 2, 3, 4, 5]])
    expected = [[10, 11, 11, 12, 12, 12, 13], [3, 4, 5, 6, 7, 8, 9]]
    for check in (True, False):
        found = positions.tree(library.array(np.asarray([10, 3])), library.array(parents), check=check)
        assert library.host(found).tolist() == expected
    two_roots = positions.tree(library.array(np.asarray([4])), library.array(np.asarray([-1, -1, 1])))
    assert library.host(two_roots).tolist() == [[4, 4, 5]]
    assert positions.tree(np.asarray([4]), np.zeros(0, dtype=np.int64)).shape == (1, 0)
    held = positions.constant_drafts(library.array(np.asarray([7, 3])), 2)
    assert library.host(held).tolist() == [[6, 6], [2, 2]]


def test_padding_as_libraries_number_it() -> None:
    mask = np.asarray([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]])
    counts = np.cumsum(mask, axis=1)
    assert np.array_equal(positions.from_mask(mask, padding=-1), counts * mask - 1)  # OPT, before its offset
    assert np.array_equal(positions.from_mask(mask, padding=0), (counts - 1) * mask)  # BLOOM, Falcon
    assert np.array_equal(positions.from_mask(mask, padding=-1) + 1 + 1, counts * mask + 1)  # RoBERTa, padding_idx 1


def test_audio_and_video_in_one_timeline(library: Library) -> None:
    prompt = [("text", 3), ("video", 2, 2, 2, 0.33), ("text", 2)]
    for rounding, bos, chunk, times in (
        ("down", "same", 2.0, [0, 1, 2, 3, 3, 3, 3, 11, 11, 11, 11, 12, 13]),
        ("none", "consecutive", None, [0, 1, 2, 3, 3, 3, 3, 11.25, 11.25, 11.25, 11.25, 12.25, 13.25]),
    ):
        found = positions.tmrope(prompt, per_second=25, rounding=rounding, bos=bos, seconds_per_chunk=chunk, xp=library.xp)
        assert library.host(found)[0].tolist() == times
        assert library.host(found)[1].tolist()[3:11] == [3, 3, 4, 4] * 2
    assert positions.tmrope([], per_second=25, rounding="down", bos="same", seconds_per_chunk=2).shape == (3, 0)


def test_audio_in_video_by_chunks_and_by_time() -> None:
    prompt = [("text", 2), ("audio in video", 2, 1, 1, 1.0, 4), ("text", 1)]
    chunks = positions.tmrope(prompt, per_second=2, rounding="down", bos="same", seconds_per_chunk=1.0)
    assert chunks[0].tolist() == [0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8]
    merged = positions.tmrope(prompt, per_second=2, rounding="none", bos="consecutive", seconds_per_chunk=None)
    assert merged[0].tolist() == [0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 10]


def test_decoding_after_images(library: Library) -> None:
    prompt = positions.multimodal([("text", 1), ("image", 2, 2), ("text", 1)], after="max")
    padded = np.stack([np.concatenate([np.zeros((3, 2), dtype=np.int64), prompt], axis=1), np.full((3, 8), 1)], axis=1)
    padded[:, 1] = np.arange(8)
    mask = np.asarray([[0, 0, 1, 1, 1, 1, 1, 1], [1] * 8])
    found = positions.decode_delta(library.array(padded), library.array(mask))
    assert library.host(found).tolist() == [-2, 0]
    found = positions.decode_delta(library.array(padded), library.array(mask * 0))
    assert library.host(found).tolist() == [0, 0]
    assert positions.decode_delta(np.zeros((3, 2, 0), dtype=np.int64), np.zeros((2, 0), dtype=bool)).tolist() == [0, 0]
    assert positions.decode_delta(np.asarray([[0.0, 8.25]], dtype=np.float32), np.ones(2, dtype=bool)).tolist() == 7.25


def test_randomised_positions(library: Library) -> None:
    draws = [[9, 0, 4, 7], [1, 8, 2, 5]]
    for length in range(5):
        found = positions.randomised(library.array(np.asarray(draws)), length=length, maximum=10)
        assert library.host(found).tolist() == [sorted(row[:length]) for row in draws]
    given_draws = np.asarray(draws[0])
    positions.randomised(given_draws, length=4, maximum=10)
    assert given_draws.tolist() == draws[0]  # not sorted in place
    assert positions.randomised(np.zeros((2, 0), dtype=np.int64), length=0, maximum=0).shape == (2, 0)
    assert positions.randomised(np.asarray([3, 3, 4, 4]), length=1, maximum=4).tolist() == [3]  # the rest is not read


def test_compressed_keys(library: Library) -> None:
    assert library.host(positions.compressed(11 // 4, rate=4, first_position=0, xp=library.xp)).tolist() == [0, 4]
    assert positions.compressed(2, rate=128, first_position=256).tolist() == [256, 384]
    seen = positions.visible_windows(library.array(np.asarray([[2, 3, 6, 7, 10]])), rate=4)
    assert library.host(seen).tolist() == [[0, 1, 1, 2, 2]]


def test_images_and_text_of_qwen_image(library: Library) -> None:
    cells, text = positions.qwen_image([(1, 5, 4)], 3, origin="centre", layered=False, xp=library.xp)
    assert sorted(set(library.host(cells)[1].tolist())) == [-3, -2, -1, 0, 1]
    assert sorted(set(library.host(cells)[2].tolist())) == [-2, -1, 0, 1]
    assert library.host(text).tolist() == [[2, 3, 4]] * 3
    cells, text = positions.qwen_image([(1, 1, 2)] * 4, 1, origin="corner", layered=True)
    assert cells.tolist() == [[0, 0, 1, 1, 2, 2, -1, -1], [0] * 8, [0, 1] * 4]
    assert text.tolist() == [[3]] * 3
    assert positions.qwen_image([], 2, origin="centre", layered=False)[1].tolist() == [[0, 1]] * 3


def test_cells_on_a_circle(library: Library) -> None:
    """Values of the authors' code; every cell is R from the origin, and at right angles to the positions of text."""
    found = positions.circle((2, 3), radius=10.0, share=0.5, xp=library.xp)
    host = library.host(found)
    assert np.allclose(host[:, [0, 3]].T, [[0, 7.0710678, -7.0710678], [-8.1649658, 4.0824829, 4.0824829]], rtol=0, atol=1e-6)
    for sizes, share in (((1, 1), 0.0), ((3, 2), 1.0), ((4, 5), 0.25)):
        cells = positions.circle(sizes, radius=3.0, share=share)
        assert np.allclose(np.sum(cells, axis=0), 0, atol=1e-14)
        assert np.allclose(np.sum(cells * cells, axis=0), 9, rtol=1e-14)
    for wrong in ({"radius": 0.0, "share": 0.5}, {"radius": 1.0, "share": 1.5}):
        with pytest.raises(ValueError, match=r"circle: (radius|share) must be"):
            positions.circle((2, 2), **wrong)
    with pytest.raises(ValueError, match="circle: sizes must be two"):
        positions.circle((1, 2, 2), radius=1.0, share=0.5)


@pytest.mark.parametrize("xp", [np])
def test_rotary_encodings_take_fractional_positions(xp: Any) -> None:
    import posref

    x, p = xp.asarray([[1.0, 0.0]]), xp.asarray([[2.25]])
    for found in (
        posref.mrope(x, p, sections=(1,), arrangement="chunked", layout="half", base=10.0),
        posref.rope(x, p[0], rotary_dim=2, layout="half", base=10.0),
    ):
        assert np.allclose(found, [[np.cos(2.25), np.sin(2.25)]])


def test_positions_made_of_numbers_are_placed_on_a_device() -> None:
    import array_api_strict as xp

    device = xp.Device("device1")
    segments = [("text", 2), ("image", 2, 2)]
    there: dict[str, Any] = {"xp": xp, "device": device}
    made = [
        positions.grid(2, 3, **there),
        positions.centred((2, 3), **there),
        positions.scaled((2, 2), (4, 4), **there),
        positions.circle((2, 2), radius=4.0, share=0.5, **there),
        positions.multimodal(segments, after="max", **there),
        positions.compressed(2, rate=4, first_position=0, **there),
        positions.zigzag(8, rank=0, ranks=2, **there),
        positions.contiguous(8, rank=0, ranks=2, **there),
        positions.striped(8, rank=0, ranks=2, **there),
        positions.tmrope(segments, per_second=25.0, rounding="down", bos="same", seconds_per_chunk=None, **there),
        *positions.qwen_image([(1, 2, 2)], 3, origin="centre", layered=False, **there),
    ]
    assert [array.device for array in made] == [device] * len(made)


def test_operations_are_the_functions_of_this_package() -> None:
    import posref

    assert posref.positions_from_tokens is positions.from_tokens
    assert posref.packed_documents is positions.documents
    assert posref.visible_windows is positions.visible_windows
    assert posref.zigzag_shard is positions.zigzag
    assert posref.striped_shard is positions.striped
    masks = np.asarray([[0, 1, 1], [1, 1, 0]])
    assert np.array_equal(positions.from_mask(masks, padding=5), posref.positions_from_mask(masks, padding=5))
    assert posref.positions_from_mask(np.asarray([1, 0, 1]), padding=5).tolist() == [0, 5, 1]  # from_mask refuses it


NEVER_LOOKED_AT = [
    (lambda x: positions.constant_drafts(x, 2), [4, 9]),
    (lambda x: positions.decode_delta(x[None, :], x > 2), [0, 1, 2, 3, 3, 3]),
    (positions.documents, [0, 1, 2, 0, 1]),
    (lambda x: positions.from_tokens(x, padding_idx=1), [0, 5, 1, 1]),
    (lambda x: positions.visible_windows(x, rate=4), [2, 3, 7]),
    (lambda x: positions.with_origin(x[None, :], tokens_after=1), [2, 3, 7]),
    (lambda x: positions.tree(x[:1] * 0 + 7, x, check=False), [-1, 0, 0, 1]),
    (lambda x: positions.randomised(x, length=3, maximum=8, check=False), [7, 2, 5, 0]),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("function", "values"), NEVER_LOOKED_AT)
def test_functions_that_do_not_look_at_values_are_compiled(function: Any, values: list[int]) -> None:
    import jax
    import torch

    expected = function(np.asarray(values)).tolist()
    assert jax.jit(function)(jax.numpy.asarray(values)).tolist() == expected
    function(torch.asarray(values))
    assert torch.compile(function, fullgraph=True, backend="eager")(torch.asarray(values)).tolist() == expected
