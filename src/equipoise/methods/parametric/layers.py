"""Size of the default encoder, in a module that does not import PyTorch."""

WIDTH, DEPTH = 256, 3  # units of a hidden layer, and number of hidden layers
