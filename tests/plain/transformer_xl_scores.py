"""As transformers 5.23.0 computes XLNet's, up to the scale: models/xlnet/modeling_xlnet.py, `rel_attn_core`, lines 104-108, and
`relative_positional_encoding`, lines 927-972. The vectors of distances are made for every query and key in place of the shift;
the order of channels of Parakeet, models/parakeet/modeling_parakeet.py, lines 90-93, is there too."""

import torch

backend = "torch"


def transformer_xl_scores(
    q,
    k,
    r_weight,
    q_positions,
    k_positions,
    /,
    *,
    layout,
    base=10000.0,
    endpoint=False,
    max_distance=None,
    bias_u=0.0,
    bias_v=0.0,
):
    if endpoint:
        raise NotImplementedError(endpoint)
    width = r_weight.shape[0]
    freq_seq = torch.arange(0, width, 2.0, dtype=torch.int64).float()
    inv_freq = 1 / torch.pow(base, (freq_seq / width))
    pos_seq = (q_positions[..., :, None] - k_positions[..., None, :]).float()
    if max_distance is not None:
        pos_seq = pos_seq.clamp(-max_distance, max_distance)
    sinusoid_inp = pos_seq[..., None] * inv_freq
    sin, cos = torch.sin(sinusoid_inp), torch.cos(sinusoid_inp)
    pos_emb = torch.cat([sin, cos], dim=-1) if layout == "sin_cos" else torch.stack([sin, cos], dim=-1).flatten(-2)
    if pos_emb.ndim > 3:  # positions of each row of the batch, alike in all heads
        if pos_emb.shape[-4] != 1:
            raise NotImplementedError(pos_emb.shape)
        pos_emb = pos_emb[..., 0, :, :, :]
    k_head_r = torch.einsum("...ijh,hnd->...nijd", pos_emb, r_weight.float())
    heads = [x if isinstance(x, float) else x.float()[:, None] for x in (bias_u, bias_v)]
    ac = torch.einsum("...nid,...njd->...nij", q.float() + heads[0], k.float())
    bd = torch.einsum("...nid,...nijd->...nij", q.float() + heads[1], k_head_r)
    return (ac + bd).to(q.dtype)
