"""Initial maps: principal components, spectral, classical scaling, random, or user-supplied."""
