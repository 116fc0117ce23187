"""Plots and pages of maps. matplotlib and Bokeh are imported only when something is drawn."""
