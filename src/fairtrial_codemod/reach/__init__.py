"""Find the functions that benchmarks can reach; changes elsewhere gain nothing."""
