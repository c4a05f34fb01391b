"""The bricks that the families are built of.

All of them are sequence-major inside, (length, batch, units), as the fused attention operators
want it; the families' models turn their batch-major inputs once, at the embedding.
"""
