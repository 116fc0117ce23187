"""From X to P on a device, in PyTorch: neighbours, affinities, and the sparse matrix that holds them."""
