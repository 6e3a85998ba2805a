# ruff: noqa
"""Slow functions over numbers, as engineers meet them; written before looking at what is found."""


def is_prime(number):
    if number < 2:
        return False
    for divisor in range(2, number):
        if number % divisor == 0:
            return False
    return True


def primes_below(limit):
    primes = []
    for candidate in range(2, limit):
        is_prime = True
        for divisor in range(2, candidate):
            if candidate % divisor == 0:
                is_prime = False
                break
        if is_prime:
            primes.append(candidate)
    return primes


def fibonacci(n):
    if n <= 1:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def divisors(number):
    found = []
    for candidate in range(1, number + 1):
        if number % candidate == 0:
            found.append(candidate)
    return found


def standard_deviation(values):
    total = 0
    for value in values:
        total += (value - sum(values) / len(values)) ** 2
    return (total / len(values)) ** 0.5


def happy_numbers(limit):
    happy = []
    for number in range(1, limit):
        current = number
        history = []
        while current != 1 and current not in history:
            history.append(current)
            current = sum([int(digit) ** 2 for digit in str(current)])
        if current == 1:
            happy.append(number)
    return happy


def perfect_squares(numbers):
    squares = [i * i for i in range(1000)]
    return [number for number in numbers if number in squares]


def histogram(values, bins):
    low = min(values)
    high = max(values)
    counts = [0] * bins
    for value in values:
        for index in range(bins):
            left = low + index * (high - low) / bins
            right = low + (index + 1) * (high - low) / bins
            if left <= value < right:
                counts[index] += 1
    return counts


def pascal_triangle(rows):
    def binomial(n, k):
        if k == 0 or k == n:
            return 1
        return binomial(n - 1, k - 1) + binomial(n - 1, k)

    triangle = []
    for n in range(rows):
        triangle.append([binomial(n, k) for k in range(n + 1)])
    return triangle
