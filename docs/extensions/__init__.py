"""Sphinx extensions that build the site."""
