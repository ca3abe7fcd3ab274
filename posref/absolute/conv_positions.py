"""Convolutional positions: a grouped convolution over the frames. Source: Baevski et al., wav2vec 2.0, arXiv:2006.11477."""

from posref.core.arrays import beside, cast, index_dtype, library, placement, spread, wide, with_axis_moved
from posref.core.checks import check_integer, check_real
from posref.core.products import matmul
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Convolutional position embedding",
    idea=(
        "A wide convolution mixes every audio frame with the frames around it. The result, added to the frame, tells the model "
        "how the frames are ordered. There is no table, so a recording may have any length."
    ),
    family="absolute",
    source="arXiv:2006.11477, section 2",
    models=("wav2vec 2.0", "HuBERT", "WavLM", "UniSpeech", "SpeechT5", "data2vec audio"),
    domains={"groups": Integer(1, usual=16)},
    arrays={"x": Axes("*R T d"), "weight": Axes("d d//groups k"), "bias": Axes("d")},
    result="=x",
    rows="*R",
    requires=("d % groups == 0", "k > 0"),
    sums=True,
    read={
        "wav2vec 2.0": "transformers 5.23.0, models/wav2vec2/modeling_wav2vec2.py:330-372",
        "HuBERT": "transformers 5.23.0, models/hubert/modeling_hubert.py:48-95",
        "WavLM": "transformers 5.23.0, models/wavlm/modeling_wavlm.py:53-95",
        "UniSpeech": "transformers 5.23.0, models/unispeech/modeling_unispeech.py:96-138",
        "SpeechT5": "transformers 5.23.0, models/speecht5/modeling_speecht5.py:355-397",
        "data2vec audio": "transformers 5.23.0, models/data2vec/modeling_data2vec_audio.py:93-132",
    },
)
def conv_positions(x: ArrayOf[T], weight: ArrayOf[T], bias: ArrayOf[T], /, *, groups: int) -> T:
    r"""
    Return the grouped convolution of frames that speech models add to encode position.

    .. math:: y_{t,o} = b_o + \sum_{k=0}^{K-1} \sum_{c=0}^{C-1}
        W_{o,c,k} \; x_{t + k - \lfloor K/2 \rfloor, \, C \lfloor o/C \rfloor + c}

    where t is a frame, o an output channel, W the weight, b the bias, G the number of groups, C = d/G the number of channels in
    a group, and K the number of taps. x is 0 before the first frame and after the last.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, T, d)``
        Frames in order. Models set padding frames to 0 first.
    weight : array, real floating, shape ``(d, d / groups, K)``
        W, learned, in the layout of PyTorch's Conv1d, after weight normalisation (`weight_norm`; wav2vec 2.0 has ``axis=2``). K
        >= 1.
    bias : array, real floating, shape ``(d,)``
        b, learned.
    groups : int
        G, a divisor of d. The models above have 16, and K = 128; data2vec has K = 19.

    Returns
    -------
    array, shape ``(*R, T, d)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If an array is not real floating, `x` has no axis of frames, `groups` does not divide d, or the shape of `weight` or
        `bias` does not fit.

    Notes
    -----
    wav2vec 2.0 and its successors add GELU(y) to x. data2vec stacks five of these convolutions, each followed by a norm without
    parameters and by GELU, and adds the last result to x. SEW's convolution has stride 2.

    An even K looks one frame further back than ahead. Libraries pad :math:`\lfloor K/2 \rfloor` frames on both sides and drop
    the last frame of the result.

    Examples
    --------
    >>> import numpy as np
    >>> x, weight = np.asarray([[1.0], [2.0], [4.0]]), np.asarray([[[1.0, 10.0, 100.0, 1000.0]]])
    >>> conv_positions(x, weight, np.asarray([0.5]), groups=1)[:, 0].tolist()
    [2100.5, 4210.5, 421.5]
    """
    name = "conv_positions"
    check_real(name, x=x, weight=weight, bias=bias)
    groups = check_integer(name, "groups", groups, 1)
    xp = library(name, x=x, weight=weight, bias=bias)
    if x.ndim < 2 or x.shape[-1] % groups:
        got = f"{tuple(x.shape)} for {groups} groups"
        msg = f"{name}: x must be (..., frames, channels), and groups must divide the channels; got {got}."
        raise ValueError(msg)
    frames, width = x.shape[-2:]
    per_group, taps = width // groups, weight.shape[-1] if weight.ndim else 0
    if tuple(weight.shape) != (width, per_group, taps) or taps < 1 or tuple(bias.shape) != (width,):
        msg = (
            f"{name}: weight must be ({width}, {per_group}, K), K at least 1, and bias ({width},); "
            f"got {tuple(weight.shape)} and {tuple(bias.shape)}."
        )
        raise ValueError(msg)
    work, lead = wide(x.dtype, xp), tuple(x.shape[:-2])
    zero = beside(0.0, x, work)
    around = [xp.broadcast_to(zero, (*lead, n, width)) for n in (taps // 2, (taps - 1) // 2)]
    padded = xp.concat([around[0], cast(x, work), around[1]], axis=x.ndim - 2)
    each, ahead = (spread(xp.arange(n, dtype=index_dtype(x), **placement(x, xp)), x) for n in (frames, taps))
    seen = xp.take(padded, xp.reshape(each[:, None] + ahead, (-1,)), axis=x.ndim - 2)  # one slice a tap is slow in Dask
    seen = with_axis_moved(xp.reshape(seen, (*lead, frames, taps, groups, per_group)), -3, -1)
    seen = with_axis_moved(xp.reshape(seen, (*lead, frames, groups, per_group * taps)), -2, -3)
    matrix = xp.matrix_transpose(xp.reshape(cast(weight, work), (groups, per_group, per_group * taps)))
    ones = xp.broadcast_to(beside(1.0, x, work), (*lead, groups, frames, 1))  # the bias comes first, as in libraries
    offsets = xp.reshape(cast(bias, work), (groups, 1, per_group))
    sums = matmul(xp.concat([ones, seen], axis=x.ndim), xp.concat([offsets, matrix], axis=1))
    return cast(xp.reshape(with_axis_moved(sums, -3, -2), tuple(x.shape)), x.dtype)
