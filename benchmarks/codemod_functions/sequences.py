# ruff: noqa
"""Slow functions over lists, as engineers meet them; written before looking at what is found."""


def bubble_sort(values):
    result = list(values)
    n = len(result)
    for i in range(n):
        for j in range(0, n - i - 1):
            if result[j] > result[j + 1]:
                temp = result[j]
                result[j] = result[j + 1]
                result[j + 1] = temp
    return result


def deduplicate(items):
    unique = []
    for item in items:
        if item not in unique:
            unique.append(item)
    return unique


def running_maximum(values):
    result = []
    for i in range(len(values)):
        result.append(max(values[: i + 1]))
    return result


def prefix_sums(values):
    sums = []
    for i in range(len(values)):
        sums.append(sum(values[: i + 1]))
    return sums


def two_sum(numbers, target):
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == target:
                return [i, j]
    return None


def flatten(lists):
    result = []
    for sub in lists:
        result = result + sub
    return result


def longest_run(values):
    best = 0
    for i in range(len(values)):
        length = 0
        for j in range(i, len(values)):
            if values[j] == values[i]:
                length += 1
            else:
                break
        best = max(best, length)
    return best


def has_duplicates(values):
    for i in range(len(values)):
        for j in range(len(values)):
            if i != j and values[i] == values[j]:
                return True
    return False


def transpose(matrix):
    rows = len(matrix)
    columns = len(matrix[0])
    result = []
    for c in range(columns):
        row = []
        for r in range(rows):
            row.append(matrix[r][c])
        result.append(row)
    return result


def multiply(a, b):
    n = len(a)
    m = len(b[0])
    k = len(b)
    product = [[0 for _ in range(m)] for _ in range(n)]
    for i in range(n):
        for j in range(m):
            for x in range(k):
                product[i][j] += a[i][x] * b[x][j]
    return product


def moving_average(values, size):
    averages = []
    for start in range(len(values) - size + 1):
        total = 0
        for offset in range(size):
            total += values[start + offset]
        averages.append(total / size)
    return averages


def intersect(left, right):
    common = []
    for item in left:
        if item in right and item not in common:
            common.append(item)
    return common


def difference(left, right):
    return [item for item in left if item not in right]


def reverse(values):
    result = []
    for value in values:
        result.insert(0, value)
    return result


def serve_queue(jobs):
    waiting = list(jobs)
    order = []
    while len(waiting) > 0:
        name, rounds = waiting.pop(0)
        if rounds > 1:
            waiting.append((name, rounds - 1))
        else:
            order.append(name)
    return order


def mode(values):
    best = None
    best_count = 0
    for value in values:
        if values.count(value) > best_count:
            best = value
            best_count = values.count(value)
    return best


def ranks(scores):
    return [sorted(scores).index(score) for score in scores]


def medians_of_prefixes(values):
    medians = []
    seen = []
    for value in values:
        seen.append(value)
        medians.append(sorted(seen)[len(seen) // 2])
    return medians
