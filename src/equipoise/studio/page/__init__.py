"""The page of the studio: widgets, plots and the data sent to the browser."""
