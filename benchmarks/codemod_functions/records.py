# ruff: noqa
"""Slow functions over tables and graphs, as engineers meet them; written before looking at what is
found."""


def common_tags(articles):
    common = articles[0]["tags"]
    for article in articles[1:]:
        narrowed = []
        for tag in common:
            if tag in article["tags"]:
                narrowed.append(tag)
        common = narrowed
    return common


def join_orders(orders, customers):
    result = []
    for order in orders:
        for customer in customers:
            if customer["id"] == order["customer_id"]:
                result.append((order["number"], customer["name"]))
    return result


def find_names(ids, users):
    names = []
    for user_id in ids:
        name = None
        for user in users:
            if user["id"] == user_id:
                name = user["name"]
                break
        names.append(name)
    return names


def group_by_city(people):
    groups = {}
    for person in people:
        if person["city"] not in groups:
            groups[person["city"]] = [p["name"] for p in people if p["city"] == person["city"]]
    return groups


def total_by_category(sales):
    categories = []
    for sale in sales:
        if sale[0] not in categories:
            categories.append(sale[0])
    totals = {}
    for category in categories:
        total = 0
        for sale in sales:
            if sale[0] == category:
                total += sale[1]
        totals[category] = total
    return totals


def topological_sort(graph):
    visited = []
    order = []

    def visit(node):
        if node in visited:
            return
        visited.append(node)
        for neighbor in graph.get(node, []):
            visit(neighbor)
        order.insert(0, node)

    for node in graph:
        visit(node)
    return order


def breadth_first(graph, start):
    queue = [start]
    visited = []
    while queue:
        node = queue.pop(0)
        if node not in visited:
            visited.append(node)
            queue.extend(graph[node])
    return visited


def count_paths(grid, row, column):
    if row == 0 or column == 0:
        return 1
    return count_paths(grid, row - 1, column) + count_paths(grid, row, column - 1)


def cheapest_route(graph, start):
    distances = {node: float("inf") for node in graph}
    distances[start] = 0
    unvisited = list(graph)
    while unvisited:
        current = None
        for node in unvisited:
            if current is None or distances[node] < distances[current]:
                current = node
        unvisited.remove(current)
        for neighbor, weight in graph[current]:
            distance = distances[current] + weight
            if distance < distances[neighbor]:
                distances[neighbor] = distance
    return distances


def reachable_pairs(edges, nodes):
    neighbors = {}
    for node in nodes:
        neighbors[node] = []
        for edge in edges:
            if edge[0] == node:
                neighbors[node].append(edge[1])
    return neighbors


def normalize(rows):
    result = []
    for row in rows:
        scaled = []
        for value in row:
            scaled.append((value - min(row)) / (max(row) - min(row)))
        result.append(scaled)
    return result


def missing_keys(records, required):
    missing = []
    for record in records:
        for key in required:
            if key not in list(record.keys()):
                missing.append((record["id"], key))
    return missing
