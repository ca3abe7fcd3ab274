"""As transformers (commit 01cc9cd) permutes Llama's weights: src/transformers/models/llama/convert_llama_weights_to_hf.py,
lines 148-150."""

backend = "torch"


def permute_qk_weights(weight, /, *, heads, source, target):
    if (source, target) != ("interleaved", "half") or weight.ndim != 2:
        raise NotImplementedError(source, target)
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)
