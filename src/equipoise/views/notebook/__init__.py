"""The widget: an interactive map in a notebook."""
