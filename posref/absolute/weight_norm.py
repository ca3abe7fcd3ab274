"""Weight normalisation of convolutional positions. Source: Salimans and Kingma, arXiv:1602.07868, equation (2)."""

from typing import Literal

from posref.core.arrays import beside, cast, library, wide, with_axis_moved
from posref.core.checks import check_integer, check_real
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Weight normalization",
    idea=(
        "A weight is stored as a direction and a length; the weight in use is the direction, brought to that length. Speech "
        "models such as wav2vec 2.0 store their positional convolution so. This gives the weights to convolve with."
    ),
    tool=True,
    family="absolute",
    source="arXiv:1602.07868, equation (2)",
    models=("wav2vec 2.0", "HuBERT", "WavLM", "UniSpeech", "SpeechT5"),
    domains={"axis": Integer(0, 2)},
    arrays={"v": Axes("o c k"), "g": Axes("[1,o][axis==0] [1,c][axis==1] [1,k][axis==2]")},
    result="=v",
    read={
        "wav2vec 2.0": "transformers 5.23.0, models/wav2vec2/modeling_wav2vec2.py:330-372",
        "HuBERT": "transformers 5.23.0, models/hubert/modeling_hubert.py:48-95",
        "WavLM": "transformers 5.23.0, models/wavlm/modeling_wavlm.py:53-95",
        "UniSpeech": "transformers 5.23.0, models/unispeech/modeling_unispeech.py:96-138",
        "SpeechT5": "transformers 5.23.0, models/speecht5/modeling_speecht5.py:355-397",
    },
)
def weight_norm(v: ArrayOf[T], g: ArrayOf[T], /, *, axis: Literal[0, 1, 2]) -> T:
    r"""
    Return the weights of a convolution, given their directions and lengths.

    .. math:: W_{\cdot n \cdot} = g_n \, \frac{v_{\cdot n \cdot}}{\lVert v_{\cdot n \cdot} \rVert}

    where n is an index along `axis`, a dot stands for all indices of the other two axes, and :math:`\lVert \cdot \rVert` is the
    root of the sum of the squares.

    Parameters
    ----------
    v : array, real floating, shape ``(d, d / groups, K)``
        Directions, in the shape of the weights: output channels, input channels of a group, taps. PyTorch calls them
        ``weight_v`` or ``original1``.
    g : array, real floating, shape of `v` with size 1 along the other two axes
        Lengths, ``weight_g`` or ``original0`` in PyTorch.
    axis : {0, 1, 2}
        The axis that keeps its size in `g`. 2 in the models above: one length for each tap. PyTorch's default is 0: one length
        for each output channel.

    Returns
    -------
    array, shape of `v`
        W, in the dtype of `v`: the weights for `conv_positions`. Where a direction is all zeros, W is 0; PyTorch returns NaN.

    Raises
    ------
    ValueError
        If `v` or `g` is not real floating, `v` is not 3-D, the shape of `g` does not fit, or `axis` is not 0, 1 or 2.

    Examples
    --------
    >>> import numpy as np
    >>> v, g = np.asarray([[[3.0, 0.0]], [[4.0, 2.0]]]), np.asarray([[[10.0, 1.0]]])
    >>> weight_norm(v, g, axis=2).tolist()
    [[[6.0, 0.0]], [[8.0, 1.0]]]
    """
    check_real("weight_norm", v=v, g=g)
    check_integer("weight_norm", "axis", axis, 0)
    if v.ndim != 3 or axis > 2:
        msg = f"weight_norm: v must be 3-D, (outputs, inputs, taps), and axis 0, 1 or 2; got {tuple(v.shape)} and axis {axis}."
        raise ValueError(msg)
    lengths = tuple(n if k == axis else 1 for k, n in enumerate(v.shape))
    if tuple(g.shape) != lengths:
        msg = f"weight_norm: g must have shape {lengths}, with v of {tuple(v.shape)} and axis {axis}; got {tuple(g.shape)}."
        raise ValueError(msg)
    xp = library("weight_norm", v=v, g=g)
    work, count = wide(v.dtype, xp), v.shape[axis]
    if 0 in v.shape:
        return cast(v, v.dtype)
    direction = cast(v, work)
    flat = xp.reshape(with_axis_moved(direction, axis, 0), (count, v.shape[0] * v.shape[1] * v.shape[2] // count))
    squares = xp.sum(flat * flat, axis=-1)
    norm = xp.sqrt(xp.where(squares == 0, beside(1.0, v, work), squares))
    return cast(direction * (cast(g, work) / xp.reshape(norm, lengths)), v.dtype)
