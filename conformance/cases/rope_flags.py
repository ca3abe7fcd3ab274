"""What the cases of rope and its stages catch."""

from ..model import Flag

FLAGS = {
    # layout and sign
    "layout": Flag("pairs of channels taken in the other layout", "vllm-ascend #12820, LLMs-from-scratch #747"),
    "table-layout": Flag("a table laid out for other pairs than the rotation's", "ark-nlp #47, how-to-train-your-gpt #6"),
    "mixed-layout": Flag("pairs read in one layout and written in another", "vllm-metal #44"),
    "sign": Flag("a rotation by -p, or half of one", "lalamo #268"),
    "inverse": Flag(
        "a backward pass that rotates forward, or drops the tail or the factor", "flash-attention #569, apex #1750"
    ),
    # positions
    "one-based": Flag("positions counted from one, or no identity at position 0", "fairseq's padding offset"),
    "far-position": Flag("positions held in bfloat16 or float16", "transformers #29285, Megatron-LM #744, candle #3520"),
    "table-end": Flag("positions past a table clamped, wrapped, or packed in 16 bits", "pegainfer #220, vllm-ascend #1266"),
    "position-ids": Flag("a count from 0, or from the first token, in place of the caller's positions", "keras-hub #1544"),
    "row-offsets": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "decode": Flag("one token at an offset handled as if it were the first", "MLX d40e76809, flashinfer #847"),
    "negative": Flag("positions without a sign, where a cache is shifted back", "llama.cpp #13870"),
    "fractional": Flag("positions truncated to integers"),
    "cache-key": Flag("a table kept from another call with other positions or base", "rotary-embedding-torch #11"),
    # shapes
    "token-axis": Flag("heads taken for tokens, or tokens for heads", "open_lm #4, DeepSpeed #2782"),
    "rank": Flag("an axis counted from the wrong end at another rank", "burn 0aecba362"),
    "single-head": Flag("one head returned unrotated", "Liger-Kernel #342"),
    "every-head": Flag("some heads left unrotated", "transformers #47403"),
    "odd-size": Flag("a vectorised loop without its tail, or a bound off by one", "flashinfer #2470"),
    "empty": Flag("an input without tokens that crashes or comes back in another shape"),
    "aliasing": Flag("the input overwritten while or after it is read", "unsloth #5001, transformers #11725"),
    # numbers
    "half-precision": Flag(
        "exponents, frequencies, angles or tables rounded to half precision",
        "keras-hub #1508, MLX #2791, tt-metal #54516",
    ),
    "downcast": Flag("24-bit x, cosines or sines narrowed on the way", "sglang #3134, flashinfer #585"),
    "quantised-angle": Flag("angles looked up in a table of a few thousand steps"),
    "base": Flag("the base always 10000", "airllm #368, llama.cpp #2773, penzai #102"),
    "exponent": Flag("another exponent than 2i/d", "labml #313"),
    "true-size": Flag("a model's own parameters not applied as they are written", "mlx-vlm #1710"),
    # partial rotation
    "partial": Flag("rotary_dim ignored, applied twice, or taken from the end", "maxtext #4616, vLLM #41185"),
    "lanes": Flag("the first channels rotated where the last are asked for, or the reverse", "DeepSeek-V4"),
    "partial-exponent": Flag("the exponent divided by the head size, not by rotary_dim", "neuronx-distributed-inference #106"),
    "partial-tail": Flag("channels past rotary_dim zeroed, rounded or rotated", "apex #1750, labml #215"),
    # context extensions
    "linear": Flag("scaling ignored, or positions multiplied by the factor", "mlx-vlm #1710, mlxcel #1324"),
    "ntk-exponent": Flag("the base multiplied by the factor without the power d/(d-2)"),
    "dynamic-below": Flag("dynamic NTK applied at or below the original length", "mlxcel #1389"),
    "dynamic-above": Flag("dynamic NTK not applied, or with the static factor", "mlxcel #1324, Megatron-LM #2902"),
    "dynamic-stale": Flag("dynamic NTK that keeps the longest length of earlier calls", "transformers #25308, #27226"),
    "dynamic-limit": Flag("a stale base at exactly the original length", "transformers 5.23 (seq_len < original)"),
    "llama3-bands": Flag("Llama 3's bands moved (no 2 pi), or its ramp inverted", "TransformerLens #910"),
    "llama3-factor": Flag("Llama 3's factor or limits fixed at 8, 1 and 4", "foundation-model-stack #385"),
    "llama3-step": Flag("low_freq_factor equal to high_freq_factor divides by zero (Llama 4)"),
    "yarn-gain": Flag("the attention factor dropped, squared, or on one of cos and sin", "exllamav3 #259, sglang #33558"),
    "yarn-gain-layout": Flag("the attention factor applied in one layout alone", "daScript #3479, Megatron-LM #3900"),
    "yarn-mscale": Flag("mscale and mscale_all_dim ignored, or their ratio inverted", "mobius #548, Megatron-LM #1429"),
    "yarn-zero": Flag("a zero taken for a parameter that is not given", "MLX #4098"),
    "yarn-truncate": Flag("the correction range always rounded to integers, or never", "TVM #18576, keras-hub #2981"),
    "yarn-range": Flag("the correction range clamped to d/2 - 1, or not clamped at all", "keras-hub #2981, minimind #602"),
    "yarn-betas": Flag("beta_fast and beta_slow swapped, or fixed at 32 and 1"),
    "yarn-singular": Flag("a ramp of width 0 that divides by zero (Kimi K2)"),
    "yarn-factor": Flag("the factor inside the power, fixed, or derived from lengths", "TVM #18576, transformers #38224"),
    # must be refused
    "refuse-width": Flag("an odd, oversized or mismatched width accepted"),
    "refuse-positions": Flag("positions that broadcast to a silent mistake", "sglang #15984, sgl-kernel-xpu #202"),
    "refuse-option": Flag("an unknown word, or a number outside its domain, accepted", "nntrainer #3982"),
}
