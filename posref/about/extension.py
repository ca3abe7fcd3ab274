"""Longer texts: windows, distances and temperatures."""

from .options import COUNTING, PAIRS, SHIFT, SIDES
from .record import About, Word, used_by

ABOUT = {
    "attention_temperature": About(
        "Attention temperature by position",
        "In a long text the softmax spreads its weight over more and more keys, and attention blurs. Multiplying late queries "
        "by a factor a little above 1 sharpens it again. The factor is 1 up to some length, then grows with the logarithm.",
        {
            "form": {
                "steps": Word(
                    "The factor stays the same for a whole stretch of tokens, then jumps.",
                    ("Llama 4", "Ministral 3", "Mistral 4"),
                ),
                "smooth": Word("The factor grows with every token beyond the length.", ("Inkling",)),
            }
        },
    ),
    "sliding_window": About(
        "Sliding window attention",
        "A query sees only the keys near it, say the last 4096 tokens. Then cost and memory no longer grow with every token of "
        "a long text. Whether a window of 4096 counts the query itself differs between libraries.",
        {
            "counting": used_by(
                COUNTING,
                with_query=("transformers", "vLLM", "gpt-oss", "Gemma"),
                without_query=("Mistral's first code", "FlashAttention's window_size", "SGLang", "axlearn", "ModernBERT"),
            ),
            "sides": used_by(SIDES, both=("ModernBERT",)),
        },
    ),
    "chunked_window": About(
        "Chunked attention",
        "The text is cut into chunks of, say, 8192 tokens, and a query sees only the keys of its own chunk. Unlike with a "
        "sliding window, the first token of a chunk sees nothing before it.",
        {"sides": used_by(SIDES, causal=("Llama 4",))},
    ),
    "dual_chunk_distances": About(
        "Distances of dual chunk attention",
        "A model trained on 32768 tokens has never met a larger distance. Dual chunk attention cuts the text into chunks: "
        "distances within a chunk are exact, those to far chunks are replaced by ones that training had. This gives the "
        "distances.",
    ),
    "dual_chunk": About(
        "Dual chunk attention (DCA)",
        "RoPE for texts longer than in training. The text is cut into chunks. Distances within a chunk, and to the nearest "
        "keys of the chunk before, are exact; larger ones are replaced by distances that training had. The model need not be "
        "trained again.",
        {"layout": PAIRS},
    ),
    "lambda_window": About(
        "Window with attention sinks",
        "A query sees the last few thousand tokens, and always the first few of the text. Models put much weight on these "
        "first tokens, called sinks, and fail when a window drops them. Drawn, the mask has the shape of the letter lambda.",
        {
            "counting": used_by(
                COUNTING,
                with_query=("LM-Infinite", "StreamingLLM's chat"),
                without_query=("StreamingLLM's evaluation of perplexity",),
            )
        },
    ),
    "leaky_rerope_distances": About(
        "Distances of Leaky ReRoPE",
        "Within a window, distances are exact. Beyond it they grow slowly, say by 1 for every 16 tokens. So in a text "
        "several times longer than in training, distances stay within what the model has met. This gives the distances.",
    ),
    "leaky_rerope": About(
        "Leaky ReRoPE",
        "RoPE whose distances grow slowly beyond a window: with a window of 512, a key 672 tokens back may count as 522 back. "
        "Near keys stay exact, far ones stay in order, and a text may be several times longer than in training.",
        {"layout": PAIRS},
    ),
    "learned_logn_scale": About(
        "Learned log-n attention scaling (SSMax)",
        "With more keys, the softmax spreads its weight more thinly. Here every head learns how much sharper its queries "
        "become with the logarithm of how many keys they see, and from what start.",
    ),
    "logn_scale": About(
        "Log-n attention scaling",
        "With more keys, the softmax spreads its weight more thinly. Log-n scaling multiplies a query by the logarithm of its "
        "position, divided by the logarithm of the training length. So attention stays about as sharp in a long text as in "
        "training.",
    ),
    "rerope_distances": About(
        "Distances of ReRoPE",
        "Within a window of, say, 512 tokens, distances are exact. All keys further back count as exactly 512 away. So no "
        "distance is larger than those that the model met in training. This gives the distances.",
    ),
    "rerope": About(
        "Rectified RoPE (ReRoPE)",
        "RoPE whose distances stop growing at a window: all keys beyond 512 tokens, say, count as 512 away. So a trained model "
        "can read longer texts. It takes two passes, one with RoPE as usual and one for the far keys.",
        {"layout": PAIRS},
    ),
    "self_extend_distances": About(
        "Distances of Self-Extend",
        "Near keys keep their exact distance. Positions of far ones are grouped: with groups of 8, tokens 0 to 7 share one "
        "position. So far distances shrink to about an eighth, which the model met in training. This gives the distances.",
        {"shift": SHIFT},
    ),
    "self_extend": About(
        "Self-Extend",
        "RoPE for texts longer than in training. Near keys keep exact distances; far ones are grouped, so that eight "
        "neighbours, say, share one position and distances shrink. The order of the text survives, and nothing is trained.",
        {"shift": SHIFT, "layout": PAIRS},
    ),
    "streaming_llm_distances": About(
        "Distances of StreamingLLM",
        "StreamingLLM keeps the first few tokens and the latest ones, and forgets those between. Positions count places in "
        "this cache, so the first tokens never get further away than the cache is long. This gives the distances.",
        {"counting": used_by(COUNTING, without_query=("StreamingLLM's evaluation of perplexity",))},
    ),
    "streaming_llm": About(
        "StreamingLLM",
        "A chat may go on for millions of tokens, but the cache keeps only the first few and the latest. RoPE then rotates by "
        "places in the cache, not by places in the text, so that no distance is larger than the model knows.",
        {"counting": used_by(COUNTING, without_query=("StreamingLLM's evaluation of perplexity",)), "layout": PAIRS},
    ),
}
