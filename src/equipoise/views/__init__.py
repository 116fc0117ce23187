"""Pictures. matplotlib is imported here and nowhere above."""
