"""Check the input before any computation; errors name the row and the column at fault, and a remedy."""
