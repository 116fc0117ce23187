"""Parametric maps: train an encoder network on the loss of a method."""
