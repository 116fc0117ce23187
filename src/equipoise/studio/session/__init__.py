"""A run of the studio: stepping, changes of parameters, and the way back."""
