def total(n):
    return sum([i for i in range(n) for _ in range(32)]) // 32
