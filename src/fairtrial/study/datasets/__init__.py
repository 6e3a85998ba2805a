"""Datasets: rows of files and tables as problems of a study."""
