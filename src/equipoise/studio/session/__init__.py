"""Runs of the studio: stepping, changing parameters and rewinding."""
