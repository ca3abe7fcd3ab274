"""Biases that are added to attention logits."""

from .record import About, Word

ABOUT = {
    "alibi_slopes": About(
        "ALiBi slopes",
        "In ALiBi every attention head lowers far keys at a rate of its own. With 8 heads the rates are 1/2, 1/4 and so on "
        "down to 1/256: the first head sees only the nearest tokens, the last one far back. This gives the rate of each head.",
    ),
    "alibi": About(
        "Attention with linear biases (ALiBi)",
        "Every attention head lowers the logit of a key by a fixed amount per token of distance: a key 10 tokens back loses "
        "ten times the head's slope. So near keys are preferred. Nothing is learned, and texts may be longer than in "
        "training.",
        {
            "form": {
                "distance": Word(
                    "The bias is minus the slope times the distance, on both sides of the query.",
                    ("FlashAttention without causal",),
                ),
                "causal": Word(
                    "The bias is minus the slope times query minus key, so that keys after the query get a positive one."
                ),
                "key": Word(
                    "The bias is the slope times the key's position, which equals the others only after a causal softmax.",
                    ("BLOOM", "MPT", "FlashAttention with causal"),
                ),
            }
        },
    ),
    "t5_buckets": About(
        "T5 distance buckets",
        "Whether a key is 3 or 4 tokens away matters; whether it is 300 or 301 does not. T5 sorts distances into buckets: "
        "each short distance has its own, and long ones share buckets that get wider and wider. This gives the bucket of each "
        "distance.",
    ),
    "t5_bias": About(
        "T5 relative position bias",
        "Every attention head has a learned number for each short distance, and one for each range of longer distances. The "
        "number for the distance between query and key is added to their logit. So a head learns which distances it prefers.",
    ),
}
