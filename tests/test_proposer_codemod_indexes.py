"""Indexes, sets and inner caches: what they make of slow code, and that it still does the same."""

import copy
import re
import textwrap

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial_codemod.transforms.catalogue import CATALOGUE, transform

FEW = st.lists(st.integers(0, 5), max_size=8)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8)
TEXTS = st.lists(st.text("abAB ", max_size=3), max_size=6)
ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 4), "name": st.text("abAB", max_size=2)}),
    max_size=7,
)
WORDS = st.dictionaries(st.integers(0, 5), st.integers(0, 5), max_size=5)
LISTS = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 2), max_size=1), max_size=5)
SMALL = st.integers(0, 9)
ANY = st.one_of(
    FEW,
    FEW.map(tuple),
    FEW.map(set),
    WORDS,
    st.lists(st.lists(st.integers(0, 2), max_size=1), max_size=4),
    st.text("abc", max_size=3),
    st.none(),
)

# (transformation, what must be in the new text, inputs of f, source)
CASES = {
    "set beside what is computed": (
        "mirror_set",
        "seen_set.add(seen_item)",
        [PAIRS],
        """
        def f(pairs):
            seen = [(0, 0)]
            out = []
            for a, b in pairs:
                if (b, a) not in seen and (a, b) not in seen:
                    # both ways
                    seen.append((a, b))
                elif a > 2:
                    seen += [(a + 1, b), (a, b + 1)]
                elif b > 7:
                    seen.insert(0, (b, a))
                elif a == b:
                    seen.clear()
                out.append(len(seen))
            out += seen
            return out, seen
        """,
    ),
    "set beside parts of what is seen": (
        "mirror_set",
        "seen_item = row['name'].lower()",
        [ROWS],
        """
        def f(rows):
            seen = []
            ids = []
            for row in rows:
                if row["id"] in ids:
                    continue
                ids.append(row['id'])
                if row["name"].lower() not in seen:
                    seen.append(row['name'].lower())
            return ids, seen
        """,
    ),
    "set of an argument": (
        "asked_set",
        "known_set = set(known) if type(known) in (list, tuple) else known",
        [FEW, ANY],
        """
        def f(xs, known):
            out = []
            for x in xs:
                if x in known or x + 1 not in known:
                    out.append(x)
            return out
        """,
    ),
    "set of an argument in a comprehension": (
        "asked_set",
        "if x in known_set]",
        [TEXTS, st.one_of(TEXTS, st.text("ab"))],
        """
        def f(xs, known):
            return [x for x in xs if x in known]
        """,
    ),
    "set of what an object holds": (
        "asked_set",
        "set(self._known) if type(self._known) in (list, tuple) else self._known",
        [FEW, ANY],
        """
        class Filter:
            def __init__(self, known):
                self._known = known
                self.count = 0
            def keep(self, xs):
                out = []
                for x in xs:
                    if x in self._known and len(self._known) > 1:
                        self.count += 1
                        out.append(x)
                return out, [x for x in xs if x not in self._known], self.count
        def f(xs, known):
            return Filter(known).keep(xs)
        """,
    ),
    "set of what a call gives": (
        "asked_set",
        "while i in names_set",
        [FEW],
        """
        def load(xs):
            return list(xs)
        def f(xs):
            names = load(xs)
            i = 0
            while i in names:
                i += 1
            return i
        """,
    ),
    "values are asked": (
        "inner_set",
        "known = set(d.values())",
        [FEW, st.one_of(WORDS, LISTS)],
        """
        def f(xs, d):
            out = [x for x in xs if x in d.values()]
            for x in xs:
                if x not in list(d.values()) and x in list(xs):
                    out.append(x)
            return out
        """,
    ),
    "words of a text are asked": (
        "inner_set",
        'known = set(text.split(" "))',
        [TEXTS, st.text("ab ")],
        """
        def f(words, text):
            out = []
            for word in words:
                if word.lower() in text.split(" "):
                    out.append(word)
                if word in [other.upper() for other in words]:
                    out.append(word)
            return out
        """,
    ),
    "the first of equal keys": (
        "match_index",
        'next((u for u in users_index.get(o["id"], ()) if',
        [ROWS, ROWS],
        """
        def f(users, orders):
            out = []
            for o in orders:
                u = next((u for u in users if u["id"] == o["id"]), None)
                out.append(u and u["name"])
            return out
        """,
    ),
    "a sum over equal keys": (
        "match_index",
        "for o in orders_index.get(u, ()) if o[0] == u) for u in users}",
        [FEW, PAIRS],
        """
        def f(users, orders):
            return {u: sum(o[1] for o in orders if o[0] == u) for u in users}
        """,
    ),
    "whether there is an equal key": (
        "match_index",
        "any(x[0] == y[1] for y in b_index.get(x[0], ()))",
        [PAIRS, PAIRS, PAIRS],
        """
        def f(a, b, c):
            out = [x for x in a if any(x[0] == y[1] for y in b)]
            for x in a:
                if all(x[1] != z[1] for z in c):
                    out.append((x, sum(w[0] == x[0] for w in b)))
            return out
        """,
    ),
    "others are skipped": (
        "match_index",
        "for b in bs_index.get(a[0], ()):",
        [PAIRS, PAIRS],
        """
        def f(ones, bs):
            out = []
            for a in ones:
                for b in bs:
                    if b[0] != a[0] or b[1] == 3:
                        continue
                    out.append((a, b))
                    if b[1] > 5:
                        break
                else:
                    out.append(a)
            return out
        """,
    ),
    "items with several names": (
        "match_index",
        "for k, v in pairs_index.get(x, ()):",
        [FEW, PAIRS, WORDS],
        """
        def f(xs, pairs, words):
            out = []
            for x in xs:
                for k, v in pairs:
                    if k == x:
                        out.append(v)
                out += [key for key, value in words.items() if value == x]
                out += [i for i, (a, b) in enumerate(pairs) if x == b]
            return out
        """,
    ),
    "texts that are equal when they are small": (
        "match_index",
        "ones_index.setdefault(ones_item['name'].lower(), []).append(ones_item)",
        [ROWS, ROWS],
        """
        def f(ones, others):
            out = []
            for b in others:
                for a in ones:
                    if a["name"].lower() == b["name"].lower():
                        out.append((a["id"], b["id"]))
            return out
        """,
    ),
    "what an object holds": (
        "match_index",
        "for users_item in self._users:",
        [PAIRS, FEW],
        """
        class Shop:
            def __init__(self, users):
                self._users = users
                self.asked = 0
            def find(self, keys):
                out = []
                for key in keys:
                    self.asked += 1
                    out.append(next((u for u in self._users if u[0] == key), None))
                return out
        def f(users, keys):
            return Shop(users).find(keys)
        """,
    ),
    "a text that others are given": (
        "hoist",
        "text_len = len(text)",
        [st.text("ab"), FEW],
        """
        def shorten(text, x):
            return text[x:]
        def f(text: str, xs: list):
            parts = (text, text)
            return [shorten(text, x) + str(len(text)) for x in xs], parts
        """,
    ),
    "items that came before": (
        "place_index",
        "[x for i, x in enumerate(xs) if xs_first[x] not in range(i)]",
        [st.one_of(FEW, st.text("abc"))],
        """
        def f(xs):
            out = [x for i, x in enumerate(xs) if x not in xs[:i]]
            for i in range(len(xs)):
                if not (xs[i] in xs[i + 1:]) or xs[i] in xs[:i]:
                    out.append(i)
            return out
        """,
    ),
    "a text that is only asked": (
        "hoist",
        "text_len = len(text)",
        [st.text("ab")],
        """
        def f(text):
            i = n = 0
            while i < len(text):
                if text.startswith("ab", i) and text != "ab":
                    n += 1
                i += 1
            return n
        """,
    ),
    "a knapsack": (
        "inner_cache",
        "asked, (max(v[n - 1] + step(cap - w[n - 1], n - 1), step(cap, n - 1))))",
        [FEW, SMALL],
        """
        def knap(w, v, cap, n):
            '''What fits.

            Of all.
            '''
            # base
            if n == 0 or cap <= 0:
                return 0
            if w[n - 1] == 5:
                raise ValueError(f"too heavy: {n}")

            if w[n - 1] > cap:
                return knap(w, v, cap, n - 1)  # too large
            return max(v[n - 1] + knap(w, v, cap - w[n - 1], n - 1), knap(w, v, cap, n - 1))

        def f(xs, cap):
            return knap(xs, xs[::-1], cap, len(xs)), knap.__doc__
        """,
    ),
    "some given by name": (
        "inner_cache",
        "(step(n - 1, left=left) + step(\n",
        [FEW, SMALL],
        """
        def count(coins, n=0, *, left, most):
            if left == 0:
                return 1
            if left < 0 or n <= 0 or coins[n - 1] == 0:
                return 0
            return count(coins, n - 1, left=left, most=most) + count(
                coins, n, most=most, left=left - coins[n - 1])

        def f(coins, total):
            return count(coins, len(coins), left=total, most=3)
        """,
    ),
    "a text that gets shorter": (
        "inner_cache",
        "if w and s.startswith(w) and step(s[len(w):]):",
        [st.text("ab", max_size=6), TEXTS],
        """
        def f(s, words):
            if not s:
                return True
            for w in words:
                if w and s.startswith(w) and f(s[len(w):], words):
                    return True
            return False
        """,
    ),
    "a nested function": (
        "inner_cache",
        "    dp_known = {}\n    def dp(i, j):",
        [st.text("ab", max_size=5), st.text("ab", max_size=5)],
        """
        def f(s, t):
            n = len(s)
            costs = {}
            for c in s:
                costs[c] = ord(c) % 3
            def dp(i, j):
                if i == n:
                    return len(t) - j
                if j == len(t):
                    return n - i
                if s[i] == t[j]:
                    return dp(i + 1, j + 1)
                options = [dp(i, j + 1), dp(i + 1, j + 1)]
                options.append(dp(i + 1, j) + costs.get(s[i], 0))
                return 1 + min(options)
            return dp(0, 0), max(dp(i, 0) for i in range(n + 1))
        """,
    ),
    "a method": (
        "inner_cache",
        "return known.setdefault(asked, (step(i + 1, j) + step(i, j + 1)))",
        [st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4)],
        """
        class _Grid:
            LAST = 3
            def __init__(self, rows):
                self.rows = rows
            def paths(self, i, j):
                if i >= len(self.rows) or j > self.LAST or self.rows[i][j] == 0:
                    return 0
                if i == len(self.rows) - 1 and j == self.LAST:
                    return 1
                return self.paths(i + 1, j) + self.paths(i, j + 1)

        def f(rows):
            grid = _Grid(rows)
            before = grid.paths(0, 0)
            rows[0][0] = 1 - rows[0][0]
            return before, grid.paths(0, 0)
        """,
    ),
    "a nested function that is called once": (
        "inner_cache",
        "dp_known = {}\n        def dp(i):",
        [FEW],
        """
        STEPS = [1, 2]
        class Stairs:
            def __init__(self, costs):
                self.costs = costs
            def cheapest(self):
                costs = self.costs
                def dp(i):
                    if i >= len(costs):
                        return 0
                    return costs[i] + min([dp(i + step) for step in STEPS])
                best = dp(0)
                costs.append(best)
                return best
        def f(costs):
            stairs = Stairs(costs)
            return stairs.cheapest(), stairs.cheapest()
        """,
    ),
    "numbers that are equal but not the same": (
        "inner_cache",
        "def step(x, n):",
        [SMALL],
        """
        def scale(rates, x, n):
            if n <= 0:
                return x
            return (scale(rates, 1, n - 1), scale(rates, 1.0, n - 1), scale(rates, True, n - 2))

        def f(n):
            return repr(scale([1], 1, n % 4))
        """,
    ),
}

# transformation -> what must not be touched, by why
UNSAFE = {
    "mirror_set": {
        "what is computed may be a list": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(next(x))
        """,
        "lists": """
            def f(rows):
                seen = []
                for row in rows:
                    if row[0] not in seen: seen.append(row[1:])
        """,
        "what is tested is a collection": """
            def f(rows):
                seen = []
                for row in rows:
                    if row not in seen: seen.append((row, len(row)))
        """,
        "it shrinks": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x + 1)
                    else: seen.pop()
        """,
        "a place is written": """
            def f(xs):
                seen = [0]
                for x in xs:
                    if x not in seen: seen.append(x + 1)
                    seen[0] = x
        """,
        "somebody else may change it": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x + 1)
                    g(seen)
        """,
        "it has another name": """
            def f(xs):
                seen = []
                also = seen
                for x in xs:
                    if x not in seen: seen.append(x + 1)
                    also.append(x)
        """,
        "it begins anew in each round": """
            def f(xs):
                for x in xs:
                    seen = []
                    if x not in seen: seen.append(x + 1)
        """,
        "the caller's list": """
            def f(xs, seen):
                for x in xs:
                    if x not in seen: seen.append(x + 1)
        """,
    },
    "asked_set": {
        "it changes": """
            def f(xs, known):
                for x in xs:
                    if x not in known: known.append(x)
        """,
        "somebody may change it meanwhile": """
            def f(xs, known):
                for x in xs:
                    if x not in known: yield x
        """,
        "it is asked later": """
            def f(xs, known):
                return (x for x in xs if x in known)
        """,
        "somebody else is given it": """
            def f(xs, known):
                for x in xs:
                    if x not in known: f([x], known)
        """,
        "a list is asked for": """
            def f(xs, known):
                return [x for x in xs if [x] in known]
        """,
        "a collection is asked for": """
            def f(rows, known):
                for row in rows:
                    if row in known: row.append(1)
        """,
        "it is no list": """
            def f(xs, known: dict[str, int], text: str):
                names = set(xs)
                return [x for x in xs if x in known or x in text or x in names]
        """,
        "a dictionary, by what is done with it": """
            def f(xs, one, two, three):
                kept = [one[x] for x in xs if x in one and x in two and x in three]
                return kept, two["a"], three.get(1)
        """,
        "a text, by what is asked": """
            def f(xs, text):
                return [x for x in xs if "a" in text and x != "a"]
        """,
        "what is held changes": """
            class A:
                def f(self, xs):
                    for x in xs:
                        if x not in self.known: self.known.append(x)
        """,
        "the object may change it": """
            class A:
                def f(self, xs):
                    for x in xs:
                        if x not in self.known: self.add(x)
        """,
        "somebody may change what the object holds": """
            class A:
                def f(self, xs):
                    for x in xs:
                        if x not in self.known: add(self, x)
        """,
        "what is held is no list": """
            class A:
                def __init__(self):
                    self.known = set()
                def f(self, xs):
                    return [x for x in xs if x not in self.known]
        """,
        "what is held is another each time": """
            class A:
                @property
                def known(self): return next(self.it)
                def f(self, xs):
                    return [x for x in xs if x not in self.known]
        """,
        "what is held has another name": """
            class A:
                def f(self, xs):
                    add = self.known.append
                    for x in xs:
                        if x not in self.known: add(x)
        """,
        "the object itself": """
            class A:
                def f(self, xs):
                    return [x for x in xs if x in self]
        """,
        "a type that is no list": """
            def f(xs, graph: Graph):
                return [x for x in xs if x in graph]
        """,
        "it is set in one case only": """
            def f(xs, flag):
                if flag:
                    known = load()
                return [x for x in xs if flag and x in known]
        """,
        "no loop": "def f(x, known):\n    return x in known",
    },
    "inner_set": {
        "values change": """
            def f(xs, d):
                for x in xs:
                    if x in d.values(): d[x] = x
        """,
        "values are taken out": """
            def f(xs, d):
                for x in xs:
                    if x in d.values(): d.pop(x)
        """,
        "there may be no dictionary": """
            def f(xs, d):
                return [x for x in xs if d is not None and x in d.values()]
        """,
        "nothing may be given": """
            def f(xs, text=None):
                return [x for x in xs if x and x in text.split()]
        """,
        "an iterator": """
            def f(xs):
                them = map(abs, xs)
                return [x for x in xs if x in list(them)]
        """,
        "lists are asked for": """
            def f(rows, d):
                for row in rows:
                    if row in d.values(): print(row[0])
        """,
    },
    "match_index": {
        "a generator is run later": """
            def f(ones, others):
                return [(b for b in others if b.id == a.id) for a in ones]
        """,
        "the key of what is found changes": """
            def f(ones, others):
                for a in ones:
                    b = next((b for b in others if b.id == a.id), None)
                    b.id = 3
        """,
        "what is found changes": """
            def f(ones, others):
                for a in ones:
                    b = next((b for b in others if b["id"] == a), None)
                    b.pop("id")
        """,
        "the last item is used": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id == b.id: print(a)
                    print(b)
        """,
        "the last item is used when there was none": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id == b.id: break
                    else:
                        print(b)
        """,
        "there may be no others": """
            def f(ones, others):
                for a in ones:
                    if others is not None:
                        for b in others:
                            if a.id == b.id: print(a)
        """,
        "keys are lists": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.tags == b.tags: print(len(a.tags))
        """,
        "others that are skipped do something": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id != b.id:
                            print(b)
                            continue
                        print(a)
        """,
        "any of others that differ": """
            def f(ones, others):
                return [a for a in ones if any(a.id != b.id for b in others)]
        """,
        "all are equal": """
            def f(ones, others):
                return [a for a in ones if all(a.id == b.id for b in others)]
        """,
        "they are set in one case only": """
            def f(ones, flag):
                if flag:
                    others = [1, 2]
                for a in ones:
                    if flag:
                        for b in others:
                            if a == b: print(a)
        """,
        "the object may change what it holds": """
            class A:
                def f(self, keys):
                    for key in keys:
                        if not any(u.key == key for u in self.users): self.add(key)
        """,
        "the object may hold nothing": """
            class A:
                def f(self, keys):
                    for key in keys:
                        if self.users:
                            print([u for u in self.users if u.key == key])
        """,
        "the object holds an iterator": """
            class A:
                def __init__(self, users): self.users = iter(users)
                def f(self, keys):
                    return [[u for u in self.users if u.key == key] for key in keys]
        """,
        "no loop around": """
            def f(a, others):
                return next((b for b in others if b.id == a.id), None)
        """,
    },
    "place_index": {
        "another item": """
            def f(xs, ys):
                return [y for i, x in enumerate(xs) for y in ys if y in xs[:i]]
        """,
        "another place": """
            def f(xs, n):
                return [x for i, x in enumerate(xs) if x in xs[:n]]
        """,
        "the place changes": """
            def f(xs):
                for i, x in enumerate(xs):
                    i -= 5
                    if x in xs[:i]: print(x)
        """,
        "the items change": """
            def f(xs):
                for i, x in enumerate(xs):
                    if x in xs[:i]: xs.pop()
        """,
        "items that are lists": """
            def f(rows):
                for i, row in enumerate(rows):
                    if row in rows[:i]: print(len(row))
        """,
    },
    "deque": {
        "it is compared": """
            def f(xs):
                todo = list(xs)
                while todo != [1]:
                    todo.pop(0)
        """,
        "it is added to a list": """
            def f(xs):
                todo = list(xs)
                while todo:
                    print([1] + todo)
                    todo.pop(0)
        """,
    },
    "hoist": {
        "it may be changed in place": """
            def f(df):
                i = 0
                while i < len(df):
                    df.replace(0, 1, inplace=True)
                    i += 1
        """,
        "a text that is another one each time": """
            def f(text: str):
                while len(text) > 3:
                    text = text[1:]
                    print(len(text))
        """,
        "another name by a condition": """
            def f(xs):
                ys = xs or [1]
                i = 0
                while i < len(xs):
                    ys.append(1)
                    i += 1
        """,
    },
    "inner_cache": {
        "it remembers by itself": """
            def f(xs, i, memo):
                if i in memo: return memo[i]
                memo[i] = f(xs, i - 1, memo) + f(xs, i - 2, memo)
                return memo[i]
        """,
        "what differs is a list": """
            def f(xs, k):
                return f(xs[1:], k) + f(xs[2:], k) if len(xs) > 2 else k
        """,
        "a list is handed on": """
            def f(xs, path, k):
                return k if not path else f(xs, path + [k], k - 1) + f(xs, path, k - 2)
        """,
        "it prints": """
            def f(xs, n):
                print(n)
                return xs[n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it calls something else": """
            def f(xs, n):
                return g(xs, n) if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it gives a list": """
            def f(xs, n):
                return [n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it changes what is handed on": """
            def f(xs, n):
                xs.append(n)
                return n if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it changes a part of what is handed on": """
            def f(xs, n):
                row = xs[n]
                row += [1]
                return n if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it goes back on its steps": """
            def f(board, n):
                total = 0
                for i in range(n):
                    board[n] = i
                    total += f(board, n - 1)
                return total
        """,
        "everything is handed on": """
            def f(xs, n):
                return f(xs, n) + f(xs, n)
        """,
        "one call only": """
            def f(xs, n):
                return f(xs, n - 1) + xs[n] if n else 0
        """,
        "a default is used": """
            def f(xs, n, k=2):
                return n if n < k else f(xs, n - 1) + f(xs, n - 2)
        """,
        "many are given": """
            def f(xs, *n):
                return n if not n else f(xs, *n[1:]) + f(xs, *n[2:])
        """,
        "a text over several lines": """
            def f(xs, n):
                if n < 0: raise ValueError('''no
                    way''')
                return xs[n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "it is decorated": """
            @g
            def f(xs, n):
                return xs[n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
        "what a nested function reads changes later": """
            def f(xs):
                def dp(n):
                    return xs[n] if n < 2 else dp(n - 1) + dp(n - 2)
                a = dp(5)
                xs[0] = 3
                return a + dp(5)
        """,
        "what a nested function reads is bound later": """
            def f(xs):
                k = 2
                def dp(n):
                    return n if n < k else dp(n - 1) + dp(n - 2)
                a = dp(5)
                k = 3
                return a + dp(5)
        """,
        "what a nested function reads is handed on": """
            def f(xs):
                def dp(n):
                    return xs[n] if n < 2 else dp(n - 1) + dp(n - 2)
                a = dp(5)
                g(xs)
                return a + dp(5)
        """,
        "a nested function that marks where it was": """
            def f(xs):
                seen = set()
                def dp(n):
                    if n in seen: return 0
                    seen.add(n)
                    return n if n < 2 else dp(n - 1) + dp(n - 2)
                return dp(5)
        """,
        "a nested function that counts": """
            def f(xs):
                calls = 0
                def dp(n):
                    nonlocal calls
                    calls += 1
                    return n if n < 2 else dp(n - 1) + dp(n - 2)
                return dp(5), calls
        """,
        "a nested function is given lists": """
            def f(xs):
                def dp(n):
                    return n if not n else dp(n) + dp(n)
                return dp([1])
        """,
        "a nested function goes out": """
            def f(xs):
                def dp(n):
                    return xs[n] if n < 2 else dp(n - 1) + dp(n - 2)
                return dp
        """,
        "others run between two calls": """
            def f(xs):
                def dp(n):
                    return xs[n] if n < 2 else dp(n - 1) + dp(n - 2)
                yield dp(2)
                yield dp(2)
        """,
        "a result that is the caller's list grows": """
            def f(xs, n):
                if n < 2: return xs
                all = f(xs, n - 1)
                all += f(xs, n - 2)
                return all
        """,
        "an iterator": """
            def f(xs):
                it = (x for x in xs)
                def dp(n):
                    return sum(it) if n < 2 else dp(n - 1) + dp(n - 2)
                return dp(3)
        """,
        "a method that calls another": """
            class A:
                def f(self, n):
                    return self.g(n) if n < 2 else self.f(n - 1) + self.f(n - 2)
        """,
        "a method of its own with a known name": """
            class A:
                def f(self, n):
                    return self.get(n) if n < 2 else self.f(n - 1) + self.f(n - 2)
        """,
        "a method that writes": """
            class A:
                def f(self, n):
                    self.n = n
                    return n if n < 2 else self.f(n - 1) + self.f(n - 2)
        """,
        "a property": """
            class A:
                @property
                def k(self): return next(self.it)
                def f(self, n):
                    return self.k if n < 2 else self.f(n - 1) + self.f(n - 2)
        """,
        "another class has such a method": """
            class A:
                def f(self, n):
                    return n if n < 2 else self.f(n - 1) + self.f(n - 2)
            class B(A):
                def f(self, n):
                    print(n)
                    return super().f(n)
        """,
        "type is something else": """
            type = 1
            def f(xs, n):
                return xs[n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
    },
}
REFUSED = [(name, why) for name, cases in UNSAFE.items() for why in cases]


def load(text):
    """The function f of a source."""
    names = {}
    exec(compile(text, "<case>", "exec", dont_inherit=True), names)
    return names["f"]


def outcome(function, arguments):
    """What it gives or raises, and what became of its arguments."""
    arguments = copy.deepcopy(arguments)
    try:
        return function(*arguments), arguments
    except Exception as error:
        return type(error), error.args, arguments


@pytest.mark.parametrize("case", CASES)
def test_the_slow_pattern_is_replaced_once(case):
    name, expected, _, text = CASES[case]
    text = textwrap.dedent(text)
    applied = transform(text, name)
    assert expected in applied.text
    assert applied.notes
    assert transform(applied.text, name).text == applied.text
    for comment in re.findall(r"#.*", text):
        assert comment in applied.text


@pytest.mark.parametrize("case", CASES)
def test_it_does_the_same_as_before_alone_and_after_all_others(case):
    name, _, inputs, text = CASES[case]
    text = textwrap.dedent(text)
    everything = text
    for each in CATALOGUE:
        everything = transform(everything, each.name).text
    before, after, last = load(text), load(transform(text, name).text), load(everything)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.tuples(*inputs))
    def check(arguments):
        expected = outcome(before, arguments)
        assert outcome(after, arguments) == expected
        assert outcome(last, arguments) == expected

    check()


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_what_may_not_be_safe_stays_as_it_is(name, why):
    text = textwrap.dedent(UNSAFE[name][why])
    assert transform(text, name).text == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_body_that_is_moved_keeps_its_form(end):
    text = (
        "if True:\n"
        "\tdef f(é, n):\n"
        "\t\t'''Ü.\n"
        "\n"
        "\t\tß'''\n"
        "\t\tif n < 2:  # ö\n"
        "\t\t\treturn é[n]\n"
        "\n"
        "\t# odd\n"
        "\t\treturn ('é' and f(é, n - 1) +\n"
        "\t\tf(é, n=n - 2))  # 漢\n"
        "\t# after\n"
        "\tx = f([1, 2], 9)\n"
    ).replace("\n", end)
    new = transform(text, "inner_cache").text
    assert (end == "\r\n") == ("\r" in new)
    assert (
        "\t\t'''Ü.\n\n\t\tß'''\n"
        "\t\tknown = {}\n"
        "\t\tdef step(n):\n"
        "\t\t\tasked = (n, type(n))\n"
        "\t\t\tif asked in known:\n"
        "\t\t\t\treturn known[asked]\n"
        "\t\t\tif n < 2:  # ö\n"
        "\t\t\t\treturn known.setdefault(asked, (é[n]))\n"
        "\n"
        "\t\t\t# odd\n"
        "\t\t\treturn (known.setdefault(asked, ('é' and step(n - 1) +\n"
        "\t\t\tstep(n=n - 2))))  # 漢\n"
        "\t\treturn step(n)\n"
        "\t# after\n"
    ) in new.replace("\r\n", "\n")
    assert outcome(load(new), ([1, 2], 12)) == outcome(load(text), ([1, 2], 12))


def test_calls_in_formatted_texts_are_moved_or_the_function_stays():
    text = (
        "def f(xs, n):\n"
        "    if n < 2:\n"
        "        return str(xs[n])\n"
        "    return f'{f(xs, n - 1)} é {f(xs, n - 2)}'\n"
    )
    new = transform(text, "inner_cache").text
    assert outcome(load(new), ([1, 2], 7)) == outcome(load(text), ([1, 2], 7))
