"""Linear algebra: eigenvectors, principal components, Gram matrices and graph Laplacians."""
