"""Positions of prompts that mix text, audio, images and videos: TMRoPE of Qwen2.5-Omni and Qwen3-Omni."""

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any, Literal, get_args

from posref.core.arrays import Array, Namespace, constants
from posref.core.checks import check_finite, check_integer, check_positive, check_word, quoted
from posref.core.grids import grid
from posref.types import HOST, N, NamespaceOf

Rounding = Literal["down", "none"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
Bos = Literal["same", "consecutive"]
BOS: tuple[Bos, ...] = get_args(Bos)


def tmrope(
    segments: Sequence[tuple[Any, ...]],
    /,
    *,
    per_second: float,
    rounding: Rounding,
    bos: Bos,
    seconds_per_chunk: float | None,
    xp: NamespaceOf[N] | None = HOST,
    device: Any = None,
) -> N:
    r"""
    Return TMRoPE's three positions (time, height, width) of every token in a prompt of text, audio, images and videos.

    A token of text or audio has the same number on all three axes, and the next token has one more. If an image or video begins
    at p, its cell in frame f, row h and column w has

    .. math:: (p + f \, s \, r, \; p + h, \; p + w)

    Here s is the number of seconds per frame and r is the number of positions per second. The next segment begins one after the
    largest position of this segment on any axis.

    Parameters
    ----------
    segments : sequence of tuples
        - ``("text", tokens)``. Count here the tokens that begin and end (BOS, EOS) an image, a video or audio alone.
        - ``("audio", tokens)``
        - ``("image", height, width)`` and ``("video", frames, height, width, seconds)``. Height and width are in cells after
          merging (transformers' grid_thw divided by spatial_merge_size). `seconds` is the time between frames.
        - ``("audio in video", frames, height, width, seconds, tokens)``. This adds two tokens that begin it and two that end
          it.
    per_second : float
        r, above 0: position_id_per_seconds in the configuration, 25 by default.
    rounding : {"down", "none"}
        "down" rounds f s r down, so positions are integers (Qwen2.5-Omni). "none" keeps fractions in float32 (Qwen3-Omni).
    bos : {"same", "consecutive"}
        Whether the two tokens that begin audio in video have the same position (Qwen2.5-Omni) or consecutive positions
        (Qwen3-Omni). The same goes for the two tokens that end it.
    seconds_per_chunk : float or None
        The order of tokens of audio in video. A number gives the seconds per chunk (2 in Qwen2.5-Omni): in every chunk, video
        tokens come first, then audio tokens. None orders tokens by time, and video first at equal times (Qwen3-Omni).
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array of integers or float32, shape ``(3, T)``
        Positions for `mrope`.

    Raises
    ------
    ValueError
        If a segment or a word is unknown, a size is not an int of at least 0, `seconds` is below 0 or not finite, `per_second`
        or `seconds_per_chunk` is not above 0, or `seconds_per_chunk` is shorter than one position.

    Source
    ------
    Qwen2.5-Omni, arXiv:2503.20215, section 2.2, and get_rope_index of transformers 5.23.0's qwen2_5_omni and qwen3_omni_moe.

    Notes
    -----
    Times are computed in float32, as in transformers. The first token that ends audio in video comes one after the largest
    position of the last piece only, so it may repeat a position of an earlier piece. With chunks, the last piece is the last
    chunk of the audio, or of the video if the video has more chunks. Without chunks, it is the rest of one stream after the
    other has ended.

    With chunks, a stream is cut before the first token whose time is at least k chunks, for k = 1, 2 and so on, and at most
    once before each token. So a video with less than one frame per chunk falls out of step with its audio.

    If you process a prompt in parts (chunked prefill), compute the positions of the whole prompt and slice them. Computed for a
    part alone, positions begin again at 0. `decode_delta` gives the positions after the prompt.

    Examples
    --------
    >>> prompt = [("text", 2), ("video", 2, 1, 2, 0.33), ("text", 1)]
    >>> tmrope(prompt, per_second=25, rounding="down", bos="same", seconds_per_chunk=2.0).tolist()
    [[0, 1, 2, 2, 10, 10, 11], [0, 1, 2, 2, 2, 2, 11], [0, 1, 2, 3, 2, 3, 11]]
    >>> tmrope(prompt, per_second=25, rounding="none", bos="consecutive", seconds_per_chunk=None)[0].tolist()
    [0.0, 1.0, 2.0, 2.0, 10.25, 10.25, 11.25]
    """
    check_word("tmrope", "rounding", rounding, ROUNDINGS)
    check_word("tmrope", "bos", bos, BOS)
    check_positive("tmrope", "per_second", per_second)
    if seconds_per_chunk is not None:
        check_positive("tmrope", "seconds_per_chunk", seconds_per_chunk)
        if int(per_second * seconds_per_chunk) < 1:
            msg = (
                f"tmrope: seconds_per_chunk must be at least one position long (1 / per_second seconds); "
                f"got {seconds_per_chunk!r} seconds, with per_second {per_second!r}."
            )
            raise ValueError(msg)
    c = constants(None)
    dtype = c.int64 if rounding == "down" else c.float32
    marks = c.asarray([[0, 1] if bos == "consecutive" else [0, 0]] * 3, dtype=dtype)
    pieces = [c.zeros((3, 0), dtype=dtype)]
    for segment in segments:
        frames, height, width, seconds, tokens = _sizes(segment)
        audio = c.asarray([list(range(tokens))] * 3, dtype=dtype)
        times = c.asarray(list(range(frames)), dtype=c.float32) * c.float32(seconds) * c.float32(per_second)
        video = c.asarray(grid(frames, height, width), dtype=dtype)
        video[0] = c.repeat(times.astype(dtype), height * width)
        if segment[0] != "audio in video":
            pieces.append(c.concatenate([video, audio], axis=1) + _following(pieces))
            continue
        pieces.append(marks + _following(pieces))
        start = _following(pieces)
        if seconds_per_chunk is None:
            pieces += _merged(video + start, audio + start)
        else:
            length = int(per_second * seconds_per_chunk)
            pieces += _alternating(video, _cuts(video[0], length), audio, _cuts(audio[0], length), start)
        pieces.append(marks + _following(pieces))
    return _placed(c.concatenate(pieces, axis=1), rounding, xp, device)


def _placed(found: Array, rounding: Rounding, xp: Namespace | None, device: Any) -> Array:
    """Return host positions in NumPy, or in `xp` on `device`: integers in its default dtype, fractions in float32."""
    if xp is None:
        return found
    where = {} if device is None else {"device": device}
    return xp.asarray(found, **where) if rounding == "down" else xp.asarray(found, dtype=xp.float32, **where)


def _following(pieces: list[Array]) -> float:
    """Return one more than the largest position of the last piece that has tokens, or 0 if no piece has any."""
    for piece in reversed(pieces):
        if piece.size:
            return piece.max().item() + 1
    return 0


def _cuts(times: Array, length: int) -> list[int]:
    """Return where chunks of `length` positions begin and end. There is at most one cut before each token."""
    cuts = [0]
    for i, time in enumerate(times.tolist()):
        if time >= len(cuts) * length:
            cuts.append(i)
    return [*cuts, times.shape[0]]


def _alternating(video: Array, video_cuts: list[int], audio: Array, audio_cuts: list[int], start: float) -> list[Array]:
    """Return the chunks of video and audio alternately, video first."""
    chunks = [
        [stream[:, a:b] + start for a, b in pairwise(cuts)] for stream, cuts in ((video, video_cuts), (audio, audio_cuts))
    ]
    return [chunk for both in zip_longest(*chunks) for chunk in both if chunk is not None]


def _merged(video: Array, audio: Array) -> list[Array]:
    """Return the tokens of video and audio in the order of their times, then the rest of the longer stream."""
    order: list[Array] = []
    v = a = 0
    while v < video.shape[1] and a < audio.shape[1]:
        if video[0, v] <= audio[0, a]:
            order.append(video[:, v : v + 1])
            v += 1
        else:
            order.append(audio[:, a : a + 1])
            a += 1
    return [*order, video[:, v:], audio[:, a:]]


def _sizes(segment: tuple[Any, ...]) -> tuple[int, int, int, float, int]:
    """Return a segment's frames, height, width and seconds per frame, and its number of text or audio tokens."""
    match segment:
        case ("text" | "audio", tokens):
            sizes, seconds = (0, 0, 0, tokens), 0.0
        case ("image", height, width):
            sizes, seconds = (1, height, width, 0), 0.0
        case ("video", frames, height, width, seconds):
            sizes = (frames, height, width, 0)
        case ("audio in video", frames, height, width, seconds, tokens):
            sizes = (frames, height, width, tokens)
        case _:
            msg = (
                "tmrope: a segment must be ('text', tokens), ('audio', tokens), ('image', height, width), ('video', frames, "
                f"height, width, seconds) or ('audio in video', frames, height, width, seconds, tokens); got {quoted(segment)}."
            )
            raise ValueError(msg)
    frames, height, width, tokens = (check_integer("tmrope", f"a size of {segment!r}", size, 0) for size in sizes)
    check_finite("tmrope", f"seconds of {segment!r}", seconds)
    if seconds < 0:
        msg = f"tmrope: seconds must be at least 0; got {seconds!r} in {segment!r}."
        raise ValueError(msg)
    return frames, height, width, float(seconds), tokens
