"""Checks of input before any computation; errors name the row, the column and the remedy."""
