"""Other models when one has failed: the layer, and what counts as too slow."""
