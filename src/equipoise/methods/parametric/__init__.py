"""Parametric maps: an encoder network trained on the loss of a method."""
