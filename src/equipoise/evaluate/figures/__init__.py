"""Figures and pages of measures."""
