"""The page of the studio: widgets, plots and what is sent to the browser."""
