"""Encodings added to embeddings, and features of coordinates."""

from .options import COMBINE, WAVES
from .record import About, Word, used_by

ABOUT = {
    "learned": About(
        "Learned position embeddings",
        "A table has one learned vector for each position: row 0 for the first token, row 1 for the second. The model adds a "
        "token's row to its embedding, and so knows where the token is. Positions beyond the last row have no vector.",
    ),
    "axial_learned": About(
        "Axial learned tables",
        "An image of 64 by 64 cells would need 4096 learned vectors. Two small tables, one for rows and one for columns, need "
        "128. A cell's vector is its row's and its column's, side by side or added.",
        {"combine": used_by(COMBINE, concat=("Reformer", "DETR"), sum=("VQ-Diffusion", "Gemma 4 vision"))},
    ),
    "conv_positions": About(
        "Convolutional position embedding",
        "A wide convolution mixes every audio frame with the frames around it. The result, added to the frame, tells the model "
        "how the frames are ordered. There is no table, so a recording may have any length.",
    ),
    "fourier": About(
        "Fourier features",
        "A network learns fine detail badly from a bare coordinate such as 0.731. Sines and cosines of it, at frequencies from "
        "low to high, spread it over many channels: the low ones tell roughly where a point is, the high ones tell it from its "
        "neighbours.",
        {
            "unit": {
                "radians": Word("The sine is taken of frequency times coordinate.", ("NeRF's code", "GLIGEN")),
                "half_turns": Word("The sine is taken of pi times frequency times coordinate.", ("NeRF's paper", "Perceiver")),
                "turns": Word(
                    "The sine is taken of 2 pi times frequency times coordinate.",
                    ("boxes in Conditional DETR", "DAB-DETR", "Grounding DINO"),
                ),
            },
            "order": {
                "coordinate band wave": Word(
                    "For each coordinate and each frequency, the sine and then the cosine.", ("NeRF's paper", "DAB-DETR")
                ),
                "band wave coordinate": Word(
                    "For each frequency, the sines of all coordinates, then their cosines.", ("NeRF's code", "GLIGEN")
                ),
                "wave coordinate band": Word(
                    "All sines, coordinate by coordinate, then all cosines.", ("Perceiver's code", "Perceiver in transformers")
                ),
                "coordinate wave band": Word(
                    "For each coordinate, its sines at all frequencies, then its cosines.", ("lucidrains' perceiver-pytorch",)
                ),
                "wave band coordinate": Word("All sines, frequency by frequency, then all cosines.", ("timm's FourierEmbed",)),
            },
            "include": {
                "none": Word("The result has only sines and cosines.", ("NeRF's paper", "GLIGEN")),
                "first": Word("The coordinates themselves are the first columns.", ("NeRF's code", "Perceiver", "timm")),
                "by_coordinate": Word(
                    "Each coordinate stands after its own sines and cosines.", ("lucidrains' perceiver-pytorch",)
                ),
            },
        },
    ),
    "hierarchical_learned": About(
        "Hierarchical learned positions",
        "BERT's table stops at 512 positions. Here position 1000 is made of two of its rows: one for the block of 512 that it "
        "is in, one for its place in the block. So n rows reach n times n positions, and the first n stay as trained.",
    ),
    "layout_2d": About(
        "2-D layout embeddings",
        "On a scanned form it matters where a word is printed. Each of the four edges of the word's box, its height and its "
        "width pick a row of a learned table. Together the six rows tell the model the word's place and size.",
        {"combine": used_by(COMBINE, concat=("LayoutLMv2", "LayoutLMv3", "LayoutXLM", "LiLT"), sum=("LayoutLM",))},
    ),
    "peg": About(
        "Positional encoding generator (PEG)",
        "A small convolution adds to every image patch a weighted sum of its neighbours. Outside the image there are only "
        "zeros, by which a patch can tell where it is. There is no table, so images may have any size.",
    ),
    "random_fourier": About(
        "Random Fourier features",
        "A point is multiplied by a random matrix that never changes, and sines and cosines are taken of the result. Each "
        "column is a wave in some random direction. Together they tell points apart; the size of the random numbers sets how "
        "finely.",
        {
            "layout": used_by(
                {w: WAVES[w] for w in ("sin_cos", "cos_sin")}, sin_cos=("SAM", "score SDE"), cos_sin=("Tancik et al.",)
            )
        },
    ),
    "resample": About(
        "Interpolation of position embeddings",
        "A vision model trained on 14 by 14 patches has 196 learned position vectors. For an image of 20 by 20 patches, the "
        "table is enlarged as if it were a picture. Libraries interpolate differently, and so give the model different "
        "vectors.",
        {
            "method": {
                "linear": Word(
                    "Each new cell is a weighted mean of the nearest old ones, bilinear over two axes.",
                    ("SigLIP 2", "Qwen3-VL", "PaddleOCR-VL", "SAM's relative tables"),
                ),
                "cubic": Word(
                    "Each new cell is a smooth mixture of some more old ones, bicubic over two axes.",
                    ("ViT, CLIP and SigLIP in transformers", "DINOv2", "timm", "open_clip", "Kimi K2.5"),
                ),
            },
            "padding": {
                "border": Word("Where the kernel reaches beyond the grid, it reads the cell at the border."),
                "zeros": Word("Where the kernel reaches beyond the grid, it reads 0.", ("Muse Spark",)),
            },
        },
    ),
    "sinusoidal": About(
        "Sinusoidal position encoding",
        "Every position gets a vector of sines and cosines, like the hands of many clocks, some fast and some slow. Together "
        "they tell all positions apart, and nothing is learned. The Transformer adds this vector to the token's embedding.",
        {
            "layout": used_by(
                WAVES,
                sin_cos=("tensor2tensor", "fairseq", "Whisper", "Marian"),
                cos_sin=("diffusers with flip_sin_to_cos",),
            ),
            "odd": {
                "refused": Word("An odd width is an error."),
                "zeros": Word(
                    "The last column is zeros, the others are the encoding of the even width below.",
                    ("tensor2tensor", "fairseq", "M2M100", "diffusers' timesteps"),
                ),
                "truncated": Word(
                    "The encoding of the even width above loses its last column.", ("positional-encodings by tatp22",)
                ),
                "extra_sine": Word(
                    "There is one more sine than cosines, and the odd width stays in the exponents.",
                    ("RoFormer, Marian and Pegasus in transformers", "Keras Hub"),
                ),
            },
        },
    ),
    "sine_2d": About(
        "Sine encoding of masked images (DETR)",
        "Images in a batch are padded to one size. For every cell this counts the valid cells above it and to its left, scales "
        "the counts, and takes their sinusoids: half of the channels tell the row, half the column. Padding does not count.",
    ),
    "sinusoidal_nd": About(
        "Sinusoidal encoding of several coordinates",
        "An image patch has a row and a column, a patch of a video also a frame. Every coordinate gets sinusoids of its own, "
        "and these stand side by side in one vector. Nothing is learned.",
        {
            "layout": WAVES,
            "phases": {
                "axis": Word("All channels of one axis come before those of the next.", ("MAE",)),
                "outer": Word(
                    "The sines of all axes come before the cosines of all axes.", ("timm unless interleave_sin_cos",)
                ),
            },
        },
    ),
    "sinusoidal_shift": About(
        "Shift matrix of sinusoids",
        "Moving on by a fixed number of tokens, say 5, changes every sinusoidal vector in the same way: each sine and cosine "
        "pair rotates by a fixed angle. This gives that rotation as a matrix. It is why sinusoids can express relative "
        "positions.",
        {"layout": WAVES},
    ),
    "timestep": About(
        "Diffusion timestep embedding",
        "A diffusion model must know how noisy its input is. The number of the step, say 500 of 1000, becomes a vector of "
        "sines and cosines at many frequencies, as a position does in the Transformer.",
    ),
    "weight_norm": About(
        "Weight normalization",
        "A weight is stored as a direction and a length; the weight in use is the direction, brought to that length. "
        "Speech models such as wav2vec 2.0 store their positional convolution so. This gives the weights to convolve with.",
    ),
}
