"""Draw maps as plots and pages. matplotlib and Bokeh are imported only when something is drawn."""
