"""Serves the page of the studio over HTTP and controls the access to it."""
