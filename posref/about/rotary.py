"""Encodings that rotate queries and keys."""

from .options import ALLOCATION, ARRANGEMENT, LANES, LAYOUT, PAIRS, ROLE, UNIT
from .record import About, Word, used_by

ABOUT = {
    "axial_table": About(
        "Cosines and sines of multimodal RoPE",
        "A token of a video has a time, a row and a column. Each channel pair follows one of these axes: its angle is the "
        "position along that axis times the pair's frequency. This gives the cosine and sine of every angle.",
        {"arrangement": ARRANGEMENT},
    ),
    "apply_rope": About(
        "Rotation by a table of cosines and sines",
        "RoPE takes two channels as a point in the plane and rotates it. Given cosines and sines, this rotates. Libraries "
        "differ in which two channels are a pair, and a model's weights fit only one choice.",
        {"layout": LAYOUT, "lanes": LANES},
    ),
    "rope_frequencies": About(
        "RoPE frequencies and context scaling",
        "With base 10000, RoPE rotates the first channel pair by 1 radian per token and the last by about 0.0001. This gives "
        "the angle per token of every pair. Scalings such as YaRN slow pairs down, so that a model can read longer texts.",
    ),
    "rope_table": About(
        "Cosines and sines of RoPE",
        "RoPE rotates each channel pair by position times frequency. This gives the cosines and sines of these angles, which "
        "all layers can share. In float32, as most code computes it, the angle at position 100000 is already off by 0.006.",
    ),
    "rope": About(
        "Rotary position embedding (RoPE)",
        "Two channels of a query or key are a point in the plane. RoPE rotates it by an angle that grows with the position, "
        "fast in some pairs and slowly in others. The product of a rotated query and key then depends only on the offset "
        "between them.",
        {"layout": LAYOUT, "lanes": LANES},
    ),
    "axial_frequencies": About(
        "Frequencies of axial RoPE",
        "A patch in row 3 and column 7 has two coordinates. Axial RoPE gives some channel pairs to the row and the others to "
        "the column. This gives the angle of every pair for one step along its axis.",
        {"allocation": ALLOCATION, "unit": UNIT},
    ),
    "axial_rope": About(
        "Axial RoPE",
        "RoPE for images: some channel pairs rotate with the patch's row, the others with its column. The product of a query "
        "and a key then depends only on how many rows and columns are between them. Video adds pairs for time.",
        {
            "allocation": ALLOCATION,
            "unit": UNIT,
            "arrangement": used_by(
                {word: ARRANGEMENT[word] for word in ("chunked", "round_robin")},
                round_robin=("Kimi's vision encoder", "EfficientLoFTR"),
            ),
            "layout": {
                "half": Word(
                    "Pair i is channels i and i + d/2 of all axes together: [row column | row column].",
                    ("Qwen2-VL", "Pixtral in transformers", "DINOv3", "CogView4"),
                ),
                "interleaved": Word(
                    "Pair i is the neighbouring channels 2i and 2i + 1.",
                    ("RoPE-ViT", "EVA-02", "Llama 4", "SAM 3", "Pixtral in Mistral's code", "Flux", "Wan", "CogVideoX"),
                ),
                "half_by_axis": Word(
                    "Each axis has a block of channels, whose first half meets its second: [row | row][column | column].",
                    ("Gemma 4", "Allegro"),
                ),
            },
        },
    ),
    "cayley": About(
        "Cayley transform",
        "Most matrices are not rotations, so a rotation is hard to learn directly. The Cayley transform makes a rotation from "
        "any list of learned numbers. Cayley-STRING uses it to learn in which directions RoPE should rotate.",
    ),
    "mixed_table": About(
        "Cosines and sines of RoPE-Mixed",
        "In axial RoPE a channel pair follows either rows or columns. In RoPE-Mixed it has a learned frequency for each, and "
        "its angle is the sum of both. This gives the cosine and sine of every angle.",
    ),
    "cayley_string": About(
        "Cayley-STRING",
        "RoPE rotates pairs of given channels. Cayley-STRING first changes the axes by a learned rotation, so that the model "
        "learns which mixtures of channels are a pair. Products of queries and keys still depend only on differences of "
        "coordinates.",
        {
            "form": {
                "conjugate": Word("The vector goes to the learned axes, rotates, and comes back (equation 9)."),
                "product": Word("The vector goes to the learned axes and rotates; going back would cancel in the product."),
            }
        },
    ),
    "circulant_string": About(
        "Circulant-STRING",
        "The rotation is learned as circulant matrices: each row is the row above it, moved by one. Such matrices are simple "
        "for the Fourier transform, so rotating many channels together stays cheap. Products depend only on differences of "
        "coordinates.",
    ),
    "fope": About(
        "Fourier position embedding (FoPE)",
        "In RoPE each channel pair has one frequency. In FoPE it mixes the cosines and sines of many frequencies, "
        "with weights for each head. Pairs at the slow end get constants, which do not change with the position.",
    ),
    "liere_rotations": About(
        "Rotation matrices of LieRE",
        "For a patch in row 3 and column 7, LieRE adds 3 times one learned matrix and 7 times another. Its matrix exponential "
        "is a rotation, since the learned matrices are skew-symmetric: mirrored entries have opposite signs. This gives each "
        "rotation.",
    ),
    "liere": About(
        "Lie rotational encoding (LieRE)",
        "RoPE rotates channels two by two. LieRE rotates many channels together, in ways that are learned for every axis of "
        "an image or video. Queries and keys are multiplied by the rotation of their place, and so their products depend on "
        "places.",
    ),
    "mixed_rope": About(
        "RoPE-Mixed",
        "In axial RoPE a channel pair follows either rows or columns. In RoPE-Mixed each pair has a learned frequency for "
        "both, and rotates by the sum. So it can also respond to diagonal directions in an image.",
        {"layout": PAIRS},
    ),
    "mla_logits": About(
        "Logits of multi-head latent attention (MLA)",
        "DeepSeek's attention stores keys in compressed form, which rotated keys do not allow. So only a few extra channels "
        "rotate, and all heads share the rotated key. The logit is the product of the rotated channels plus the product of the "
        "others.",
        {"layout": used_by(LAYOUT, interleaved=("DeepSeek-V2",), interleaved_to_half=LAYOUT["interleaved_to_half"].users)},
    ),
    "mrope": About(
        "Multimodal RoPE (M-RoPE)",
        "A token of a video has a time, a row and a column. M-RoPE divides the channel pairs of RoPE among these three. A text "
        "token has the same number on all three, so text rotates just as in RoPE.",
        {
            "arrangement": ARRANGEMENT,
            "layout": used_by(LAYOUT, half=("Qwen2-VL", "Qwen3-VL", "GLM-4.5V"), interleaved=("ERNIE 4.5-VL", "GLM-4.1V")),
        },
    ),
    "permute_qk_weights": About(
        "Permutation of query and key weights",
        "One library pairs channel 0 of 128 with channel 1, another with channel 64. Weights trained with one give nonsense "
        "with the other. Reordering the rows of the query and key projections, once, makes them fit, and no logit changes.",
        {"source": LAYOUT, "target": LAYOUT},
    ),
    "pope": About(
        "Polar position embedding (PoPE)",
        "In RoPE the angle of a channel pair depends on its content and on the position. PoPE separates them: content gives "
        "every channel a length, position gives it an angle. So what a token says and where it stands do not mix.",
        {
            "layout": {
                "cos_sin": Word("Channel c goes to c and d + c: all cosines before all sines.", ("x-transformers",)),
                "interleaved": Word("Channel c goes to 2c and 2c + 1: each cosine beside its sine.", ("PoPE-pytorch",)),
            }
        },
    ),
    "rope_cos_sin": About(
        "Cosines and sines of RoPE from a model's parameters",
        "This goes straight from a model's base and scaling to the cosine and sine of every position and channel pair. This is "
        "what a library's rotary module returns, and what a server keeps in its cache.",
    ),
    "rotary_linear_attention": About(
        "Linear attention with RoPE",
        "Linear attention has no softmax, so its cost grows with the length of the text and not with its square. RoPE "
        "rotates queries and keys where values are added up, but not in the sum of weights in the denominator, which must stay "
        "positive.",
        {"layout": PAIRS},
    ),
    "rotated_values": About(
        "RoPE on values, rotated back",
        "DeepSeek-V4 has one vector as key and value, so values come rotated by their position. Rotating the result back by "
        "the query's position leaves each value rotated by its offset from the query: again only offsets count.",
        {"layout": used_by(LAYOUT, interleaved=("DeepSeek-V4",)), "lanes": used_by(LANES, trailing=("DeepSeek-V4",))},
    ),
    "rotation_matrix": About(
        "RoPE as a matrix",
        "RoPE is a product with a matrix: four numbers for every channel pair, zeros elsewhere. It is too slow for models, "
        "but shows why RoPE works: the matrix of position 3, transposed, times the matrix of position 5 is the matrix of "
        "position 2.",
        {"layout": PAIRS},
    ),
    "xpos_scales": About(
        "xPos scales",
        "xPos multiplies the channel pairs of queries by factors that fall with the position, and keys by factors "
        "that grow. In a product of the two only the distance is left, and far keys count less. This gives the factors.",
        {"role": ROLE},
    ),
    "xpos": About(
        "Extrapolatable position embedding (xPos)",
        "With RoPE, the product of a query and a key swings up and down as they move apart. xPos also scales the channel "
        "pairs, so that the product fades with the distance, in fast pairs first. It is for causal attention.",
        {
            "role": ROLE,
            "layout": used_by(LAYOUT, interleaved=("torchscale", "x-transformers", "rotary-embedding-torch")),
        },
    ),
}
