"""What the site is built with beyond Sphinx and MyST."""
