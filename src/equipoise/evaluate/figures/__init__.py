"""Draw the results of the measures in `evaluate` as figures and pages."""
