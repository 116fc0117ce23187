"""Figures and pages of the results in `evaluate`."""
