"""TMRoPE, its decoding and Qwen-Image against the code that models run."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from posref import positions

torch = pytest.importorskip("torch")
MERGE, PER_SECOND = 2, 25
TEXT, IMAGE, VIDEO, AUDIO, VISION_START, VISION_END, AUDIO_START, AUDIO_END = range(8)

PROMPTS = [
    [("text", 2), ("video", 2, 2, 2, 0.33), ("text", 1)],
    [("text", 3), ("image", 3, 5), ("text", 2), ("video", 4, 2, 3, 0.5), ("text", 4)],
    [("image", 2, 2), ("audio", 50), ("text", 2), ("video", 3, 6, 4, 1.0)],
    [("text", 2), ("audio in video", 3, 2, 2, 2.0, 150), ("text", 3)],
    [("text", 1), ("audio in video", 5, 2, 3, 0.4, 26), ("text", 2)],
    [("audio in video", 2, 40, 30, 1.1, 51), ("text", 2), ("image", 2, 3), ("text", 1)],
    [("text", 4), ("audio in video", 3, 1, 2, 5.0, 26)],  # fewer than one frame in a chunk
]


def asked(prompt: list[tuple[Any, ...]], mel: dict[int, int]) -> tuple[list[int], dict[str, Any], list[tuple[Any, ...]]]:
    """Return token ids with the tokens that begin and end, the sizes as transformers has them, and the segments of posref."""
    ids: list[int] = []
    sizes: dict[str, list[Any]] = {"image": [], "video": [], "seconds": [], "audio": []}
    segments: list[tuple[Any, ...]] = []
    for segment in prompt:
        kind = segment[0]
        if kind == "text":
            ids += [TEXT] * segment[1]
            segments.append(segment)
            continue
        cells = 0 if kind == "audio" else int(np.prod(segment[1 : 3 if kind == "image" else 4]))
        if kind == "audio":
            sizes["audio"].append(mel[segment[1]])
            ids += [AUDIO_START, *[AUDIO] * segment[1], AUDIO_END]
        elif kind == "image":
            sizes["image"].append((1, segment[1] * MERGE, segment[2] * MERGE))
            ids += [VISION_START, *[IMAGE] * cells, VISION_END]
        else:
            sizes["video"].append((segment[1], segment[2] * MERGE, segment[3] * MERGE))
            sizes["seconds"].append(segment[4])
            if kind == "video":
                ids += [VISION_START, *[VIDEO] * cells, VISION_END]
            else:
                sizes["audio"].append(mel[segment[5]])
                ids += [VISION_START, AUDIO_START, *[VIDEO] * cells, *[AUDIO] * segment[5], AUDIO_END, VISION_END]
        segments += [segment] if kind == "audio in video" else [("text", 1), segment, ("text", 1)]
    return ids, sizes, segments


def theirs(model: type, prompt: list[tuple[Any, ...]], mel: dict[int, int], pads: int) -> tuple[Any, Any, Any]:
    ids, sizes, segments = asked(prompt, mel)
    names = {
        "image_token_id": IMAGE, "video_token_id": VIDEO, "audio_token_id": AUDIO, "vision_start_token_id": VISION_START,
        "audio_start_token_id": AUDIO_START, "position_id_per_seconds": PER_SECOND, "seconds_per_chunk": 2,
        "audio_config": SimpleNamespace(n_window=50),
    }  # fmt: skip
    self = SimpleNamespace(spatial_merge_size=MERGE, config=SimpleNamespace(**names))
    for name in ("get_llm_pos_ids_for_vision", "get_chunked_index"):
        setattr(self, name, getattr(model, name).__get__(self))
    found, delta = model.get_rope_index(
        self,
        torch.tensor([[TEXT] * pads + ids]),
        torch.tensor(sizes["image"]) if sizes["image"] else None,
        torch.tensor(sizes["video"]) if sizes["video"] else None,
        attention_mask=torch.tensor([[0] * pads + [1] * len(ids)]),
        use_audio_in_video=any(s[0] == "audio in video" for s in prompt),
        audio_seqlens=torch.tensor(sizes["audio"]) if sizes["audio"] else None,
        second_per_grids=torch.tensor(sizes["seconds"]) if sizes["seconds"] else None,
    )
    return found[:, 0, pads:], delta[0, 0], segments


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("pads", [0, 2])
def test_prompts_are_those_of_qwen2_5_omni(prompt: list[tuple[Any, ...]], pads: int) -> None:
    from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as library

    model = library.Qwen2_5OmniPreTrainedModelForConditionalGeneration
    mel = {n: 4 * n for n in (26, 50, 51, 150)}
    expected, delta, segments = theirs(model, prompt, mel, pads)
    found = positions.tmrope(segments, per_second=PER_SECOND, rounding="down", bos="same", seconds_per_chunk=2, xp=torch)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert positions.decode_delta(found, torch.ones(found.shape[1], dtype=torch.bool)) == delta


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("pads", [0, 2])
def test_prompts_are_those_of_qwen3_omni(prompt: list[tuple[Any, ...]], pads: int) -> None:
    from transformers.models.qwen3_omni_moe import modeling_qwen3_omni_moe as library

    model = library.Qwen3OmniMoePreTrainedModelForConditionalGeneration
    frames = torch.arange(1, 3000)
    lengths = library._get_feat_extract_output_lengths(frames, 50).tolist()
    mel = {n: lengths.index(n) + 1 for n in (26, 50, 51, 150)}
    expected, delta, segments = theirs(model, prompt, mel, pads)
    found = positions.tmrope(
        segments, per_second=PER_SECOND, rounding="none", bos="consecutive", seconds_per_chunk=None, xp=torch
    )
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert positions.decode_delta(found, torch.ones(found.shape[1], dtype=torch.bool)) == delta
