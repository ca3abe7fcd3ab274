"""Hints that several deviations share: what to look at in the code. A hint of one deviation stands with it."""

_SHARED: tuple[tuple[str, str], ...] = (
    (
        "These numbers must stay float32: look for a cast of the model that reaches buffers and constants too.",
        "table-bfloat16 table-float16 xpos-scales-bfloat16 xpos-scales-float16 xpos-powers-bfloat16 fope-mixes-bfloat16 "
        "slopes-bfloat16 string-bfloat16 lie-bfloat16 mixed-bfloat16 learned-logn-bfloat16 exponents-bfloat16 sinusoid-bfloat16 "
        "fourier-bands-bfloat16 random-fourier-bfloat16 factor-bfloat16 sinks-bfloat16 table-through-bfloat16 "
        "shaw-table-bfloat16 conv-bfloat16 peg-bfloat16 alibi-bfloat16 alibi-all-bfloat16",
    ),
    (
        "Compute in float32 and round once, at the end: look for a cast before the arithmetic.",
        "rotation-float16 rotation-bfloat16 x-through-bfloat16 x-through-float16 inside-input-bfloat16 pope-bfloat16 "
        "shaw-input-bfloat16 query-bfloat16 extension-query-bfloat16 extension-key-bfloat16",
    ),
    (
        "bfloat16 holds integers exactly only up to 256, float16 only up to 2048.",
        "lie-positions-bfloat16 pope-positions-bfloat16 fope-positions-bfloat16 alibi-positions-bfloat16 mask-bfloat16 "
        "factor-positions-bfloat16 extension-positions-bfloat16 timestep-float16 sinusoidal-shift-bfloat16 positions-bfloat16 "
        "positions-float16",
    ),
    (
        "Coordinates must stay float32: look for a cast to the dtype of the model.",
        "fourier-bfloat16 random-fourier-points-bfloat16",
    ),
    (
        "Compare and divide integers as integers: float32 does not hold all of them beyond 2**24.",
        "mask-float32 temperature-float32",
    ),
    (
        "Multiply position and frequency in float32, also under autocast.",
        "angles-bfloat16 angles-float16",
    ),
    (
        "Each row of the batch has positions or values of its own: look for an index [0], or a table made of one row.",
        "positions-first-row axes-first-row mixed-first-row lie-first-row pope-first-row fope-first-row timestep-first-row "
        "fourier-first-row random-fourier-first-row inside-positions-first-row mask-first-row factor-first-row "
        "extension-first-row sine-2d-first-image layout-first-box",
    ),
    (
        "Each head has numbers of its own: look for an index [0], or a head axis that is missing.",
        "mixed-first-head lie-first-head string-first-head pope-first-head fope-first-head learned-logn-first-head sinks-first-head",
    ),
    (
        "Pass the positions on: arange is right only without a cache, padding or packing.",
        "positions-arange positions-arange-of-x inside-queries-arange inside-keys-arange alibi-query-arange alibi-key-arange "
        "mask-query-arange mask-key-arange factor-arange extension-query-arange extension-key-arange rows-arange "
        "linear-by-index",
    ),
    (
        "A default is used: follow the option from the configuration to the formula.",
        "base-10000 ladder-base-10000 ladder-first-1 xpos-base-512 xpos-gamma-0.4 pope-base-10000 fope-base-10000 inside-base-10000 "
        "sinusoid-base-10000 sinusoid-unscaled timestep-period-10000 sinusoidal-shift-base-10000 sine-2d-base-10000 sine-2d-eps max-bias-8 "
        "t5-max-distance-128 t5-num-buckets-32 temperature-beta-0.1 temperature-length-8192 extension-base-10000 "
        "hierarchical-alpha-fixed resample-offset-0.1 yarn-default-betas llama3-factor-8 xpos-centre-0 ntk-mixed-exponent",
    ),
    (
        "One branch is always taken: look where the option is compared.",
        "trailing-lanes leading-lanes pope-cos-sin pope-interleaved inside-layout-half inside-layout-interleaved "
        "sinusoid-interleaved sinusoid-concatenated odd-as-zeros odd-truncated odd-extra-sine ladder-endpoint-never ladder-endpoint-always endpoint-always endpoint-never timestep-not-flipped timestep-shift-0 "
        "sinusoidal-nd-phases-axis sinusoidal-nd-phases-outer sinusoidal-shift-sin-cos sinusoidal-shift-interleaved "
        "sinusoidal-shift-endpoint-never sine-2d-offset-half fourier-turns random-fourier-sin-cos random-fourier-cos-sin "
        "peg-always-added peg-never-added resample-linear resample-cubic resample-corners resample-border t5-causal "
        "t5-bidirectional window-causal window-both-sides logn-limited logn-free factor-offset-0 factor-offset-1 "
        "temperature-smooth temperature-steps self-extend-floor self-extend-exact streaming-with-query "
        "streaming-without-query shaw-key-minus-query shaw-query-minus-key extension-half extension-interleaved "
        "linear-sees-past linear-sees-all values-trailing-lanes yarn-truncated yarn-not-truncated",
    ),
    (
        "The argument is not used, or does not reach the code that needs it.",
        "inverse-ignored lie-inverse-ignored scaling-dropped linear-ignored ntk-alpha-ignored proportional-factor-ignored "
        "extension-scaling-dropped offset-ignored yarn-dynamic-ignored longrope-mscales-ignored pope-phases-ignored "
        "mask-ignored bias-dropped sinks-dropped scale-ignored dynamic-ignores-length sine-2d-all-valid",
    ),
    (
        "Count from 0: look for a length, a cumsum or an index that begins at 1.",
        "pope-positions-plus-1 fope-positions-plus-1 alibi-key-off-by-one alibi-off-by-one inside-keys-plus-1 "
        "extension-query-plus-1 offset-plus-1 mixed-one-based lie-one-based sinusoidal-nd-one-based shaw-row-plus-1",
    ),
    (
        "Keep fractions: look for a cast to int, or a table that is looked up by position.",
        "positions-truncated axial-whole-numbers lie-whole-numbers timestep-truncated sinusoidal-nd-truncated "
        "sinusoidal-shift-truncated",
    ),
    (
        "Neighbouring query heads share a key head: use repeat_interleave, not repeat or tile.",
        "heads-tiled extension-heads-tiled values-heads-tiled fope-heads-tiled",
    ),
    (
        "Compare the order of axes where coordinates are made and where they are read: height or width first.",
        "axes-exchanged axes-exchanged-chunked axes-exchanged-interleaved axes-exchanged-round-robin axes-exchanged-ernie "
        "axes-time-last lie-exchanged sine-2d-columns-first layout-x-y-exchanged fourier-coordinates-reversed "
        "sinusoidal-nd-reversed sine-2d-other-axis",
    ),
    (
        "Compare (height, width) with the order in which sizes arrive here.",
        "resample-sizes-exchanged resample-old-sizes-exchanged peg-transposed peg-sides-exchanged",
    ),
    (
        "All axes count: look for an index [0] where axes are selected or summed.",
        "axes-first-alone mixed-first-axis lie-first-axis sinusoidal-nd-first-axis fourier-bands-of-first",
    ),
    (
        "Compare the order of cosine and sine where they are made, stored and read.",
        "cos-sin-exchanged sin-cos-exchanged sinusoid-halves-exchanged random-fourier-exchanged pope-sine-first "
        "fope-mixes-exchanged",
    ),
    (
        "Compare key minus query with query minus key, and the sign in front.",
        "positions-negated alibi-sign t5-sign shaw-other-order extension-sign window-after",
    ),
    (
        "Round down: floor, not round or ceil.",
        "t5-rounded t5-ceil temperature-rounded temperature-ceil",
    ),
    (
        "Multiply cosine and sine by the attention factor of the scaling.",
        "factor-dropped yarn-factor-missing yarn-dynamic-no-gain longrope-no-gain mla-gain-dropped values-gain-dropped",
    ),
    (
        "Multiply both cosine and sine by the attention factor.",
        "factor-on-cos-only factor-on-sin-only",
    ),
    (
        "Slice off the channels that rotate, and put the others back as they were.",
        "rotary-dim-ignored tail-zeroed tail-ones extension-all-lanes values-all-lanes mla-all-lanes permute-whole-head",
    ),
    (
        "Multiply by 2 pi before taking sine and cosine.",
        "ladder-radians random-fourier-radians random-fourier-half-turns",
    ),
    (
        "Positions are limited or wrapped by the size of a table: build it as long as the text.",
        "positions-wrapped-4096 positions-wrapped-8192",
    ),
    (
        "The rotation is skipped: look for a condition that is never true.",
        "not-rotated mla-not-rotated linear-not-rotated",
    ),
    (
        "NTK's power d/(d - 2) makes the last pair slow down by exactly the factor.",
        "ntk-base-times-factor ntk-power-missing dynamic-base-times-factor ntk-alpha-plain",
    ),
    (
        "The fast pairs stay as they are: not every pair is divided by the factor.",
        "ntk-as-linear yarn-as-linear",
    ),
    (
        "Compare max(length, L) where the method's factor is formed: below the original length nothing changes.",
        "dynamic-below-limit yarn-dynamic-below",
    ),
    (
        "Fast pairs stay, slow pairs are divided: compare which end of the ramp is 0 and which is 1.",
        "llama3-ramp-inverted llama3-bands-exchanged yarn-ramp-inverted",
    ),
    (
        "Compare the length with the original one, at each call: above it the long list is used.",
        "longrope-always-short longrope-always-long",
    ),
    (
        "Divide the logits by the root of the head's size.",
        "scale-missing scale-always-1 mla-scale-missing",
    ),
    (
        "This operation does not scale: divide by the root of D afterwards.",
        "extension-scaled shaw-scaled",
    ),
    (
        "Excluded keys need minus infinity, or where() after the softmax.",
        "mask-constant-1e4 mask-constant-1e5",
    ),
    (
        "Look up whether True in the mask means that a key may be seen.",
        "mask-inverted mask-of-forbidden",
    ),
    (
        "The sinks are the first tokens of the text: compare positions, not places in the cache.",
        "lambda-sinks-of-cache streaming-sinks-of-cache",
    ),
    (
        "Keys with a position below the number of sinks are sinks: < and not <=.",
        "lambda-sinks-plus-1 streaming-sinks-plus-1",
    ),
    (
        "A window of W: compare < with <=, and whether the query counts.",
        "extension-window-plus-1 extension-window-minus-1 self-extend-inclusive",
    ),
    (
        "Group queries and keys alike: floor(m / g) - floor(n / g).",
        "self-extend-key-alone self-extend-query-alone self-extend-difference self-extend-unfloored",
    ),
    (
        "Grouped queries move by w - w // g, so that they go on where the window ends.",
        "self-extend-no-shift self-extend-window-added",
    ),
    (
        "In the second pass queries rotate by w and keys do not.",
        "rerope-key-turned rerope-query-at-m rerope-unturned",
    ),
    (
        "Compare min(m mod s + s, chunk_size), the query's place for the chunk before.",
        "dual-chunk-no-successive dual-chunk-unlimited",
    ),
    (
        "Compare the query's place for chunks further back: min(2s - 1, chunk_size).",
        "dual-chunk-inter-unlimited dual-chunk-inter-successive",
    ),
    (
        "Compare `allocation`: one list of frequencies for all axes, or one for each.",
        "ladder-shared ladder-own ladder-chunked",
    ),
    (
        "A pair's angle is the sum over all axes.",
        "mixed-by-axis mixed-difference",
    ),
    (
        "Use the matrix exponential.",
        "lie-first-order lie-cayley",
    ),
    (
        "The basis is a Cayley transform, (I - S)(I + S)^-1: both factors, and no exponential.",
        "string-exponential string-one-factor",
    ),
    (
        "S is the upper triangle less its transpose: nothing is halved, and nothing is read below the diagonal.",
        "lie-halved string-full",
    ),
    (
        "Query scales fall with the position, key scales grow: look up which one is called.",
        "xpos-keys-as-queries xpos-queries-as-keys",
    ),
    (
        "Multiply the rotated channels, cosine and sine alike, by the scales.",
        "xpos-unscaled xpos-scale-on-cos",
    ),
    (
        "zeta is (2i/d + gamma) / (1 + gamma): compare numerator and denominator.",
        "xpos-exponent-half xpos-not-normalised",
    ),
    (
        "The exponent is -2i/d, with d the channels that rotate: compare numerator and denominator.",
        "exponent-over-head-size exponent-minus-2 exponent-half exponent-doubled",
    ),
    (
        "Compare source and target: if both read the same pairs, nothing moves; otherwise rows and bias do.",
        "permute-nothing permute-always permute-no-bias",
    ),
    (
        "The shared key's and the queries' extra channels both rotate, for every head.",
        "mla-query-at-0 mla-key-at-0 mla-first-head-alone",
    ),
    (
        "The attention factor is on the rotated channels of queries and keys, and on no others.",
        "mla-gain-once mla-gain-everywhere",
    ),
    (
        "The feature map is elu(x) + 1.",
        "linear-relu linear-elu linear-exp",
    ),
    (
        "Divide by the sum of weights over the keys that the query sees.",
        "linear-not-divided linear-below-all",
    ),
    (
        "Positions outside read the first or last row: add the offset, then clip.",
        "clip-zeros clip-before-offset",
    ),
    (
        "Multiply timesteps by the scale once: either in the model or in the embedding.",
        "timestep-unscaled timestep-scaled-twice timestep-scale-1000",
    ),
    (
        "An odd width ends in one column of zeros: pad after the halves are ordered.",
        "timestep-zeros-before-flip timestep-zeros-ahead timestep-repeated-column",
    ),
    (
        "Divide by the last count plus epsilon, then multiply by the scale.",
        "sine-2d-not-normalized sine-2d-no-scale",
    ),
    (
        "With `include` the coordinates themselves are the first columns.",
        "fourier-input-zero fourier-input-last",
    ),
    (
        "Use the bands that are given, in their order.",
        "fourier-bands-reversed fourier-octaves",
    ),
    (
        "Add the rows of both tables, and divide by nothing.",
        "axial-learned-mean axial-learned-first-alone",
    ),
    (
        "Pad K // 2 frames of zeros on both sides.",
        "conv-causal conv-edge-repeated conv-edge-wrapped",
    ),
    (
        "Add the bias to every output, also near the ends.",
        "conv-without-bias conv-bias-inside peg-without-bias",
    ),
    (
        "The norm is over all axes but `axis`.",
        "weight-norm-last-axis weight-norm-of-all",
    ),
    (
        "The norm is the root of the sum of squares.",
        "weight-norm-squared weight-norm-absolute weight-norm-undivided",
    ),
    (
        "If H is not a power of two: slopes of the power below, then every other one of twice as many.",
        "slopes-closed-form slopes-next-power",
    ),
    (
        "Slopes keep the order of the heads: no sort, and no reversed list.",
        "slopes-ascending slopes-descending slopes-reversed",
    ),
    (
        "Only form 'distance' has an absolute value.",
        "alibi-abs-missing alibi-abs-added",
    ),
    (
        "The second half is for keys after the query: r > 0, with r = key - query.",
        "t5-halves-exchanged t5-zero-after",
    ),
    (
        "Clip to -left and right, then add left.",
        "shaw-clip-exchanged shaw-rows-modulo shaw-row-minus-1",
    ),
    (
        "A chunk begins at a multiple of its size: compare positions // size.",
        "chunk-sliding chunk-from-1",
    ),
    (
        "Keys with positions below `sinks` are kept in addition to the window.",
        "lambda-no-sinks lambda-sinks-counted",
    ),
    (
        "The factor is ln(n) / ln(L): a quotient of two logarithms.",
        "logn-not-divided logn-of-quotient",
    ),
    (
        "The logarithm is the natural one, of 1 plus the quotient.",
        "temperature-one-missing temperature-log2",
    ),
    (
        "The sink is one more entry of the softmax, without a value and without the scale.",
        "sinks-to-first-key sinks-scaled",
    ),
    (
        "Look for a squeeze, or for a loop over heads that starts at 1.",
        "single-head-unrotated head-zero-unrotated",
    ),
    (
        "The denominator is the whole head's size.",
        "proportional-own-denominator proportional-fraction",
    ),
    (
        "Only the first pairs of the head rotate; the others have frequency 0.",
        "proportional-all proportional-last",
    ),
    (
        "The table has 4096 rows.",
        "positions-clamped-4095 positions-table-4096",
    ),
    (
        "A buffer is cast with the model.",
        "inv-freq-bfloat16 inv-freq-float16",
    ),
    (
        "The paper's equation differs here from all code.",
        "yarn-turns-by-index yarn-index-by-turns",
    ),
    (
        "An array library wraps negative indices.",
        "clip-wraps layout-sizes-wrapped",
    ),
    (
        "A causal mask hides this mistake.",
        "rerope-clipped rerope-both-sides leaky-after-query self-extend-after-query",
    ),
    (
        "RoPE(p) P x suffices in a dot product; equation (9) has P RoPE(p) P^T x.",
        "string-conjugate string-product",
    ),
    (
        "NeRF's paper multiplies by pi, its code does not.",
        "fourier-radians fourier-half-turns",
    ),
)
HINTS = {name: hint for hint, names in _SHARED for name in names.split()}
