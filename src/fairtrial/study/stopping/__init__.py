"""Studies that stop when they know: decisions at planned looks, and the runs that they save."""
