"""Checks of the input before any work; an error names the row, the column and the remedy."""
