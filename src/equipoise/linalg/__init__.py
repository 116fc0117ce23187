"""Eigenvectors, principal components, Gram matrices and graph Laplacians."""
