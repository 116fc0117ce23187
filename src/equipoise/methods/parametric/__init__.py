"""Parametric maps: an encoder trained on the loss of a method."""
