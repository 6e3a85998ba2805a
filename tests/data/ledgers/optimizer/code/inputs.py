def number(rng):
    return (rng.randrange(200, 250),), {}
