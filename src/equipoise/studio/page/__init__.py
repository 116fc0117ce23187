"""Builds and updates the page of the studio: its widgets, its plots and the data sent to the browser."""
