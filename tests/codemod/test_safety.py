"""Code that looks like a slow pattern and must stay unchanged."""

import textwrap

import pytest

from fairtrial_codemod.catalog import CATALOG, get_refusal, transform

# transformation -> what must not be touched, by why
UNSAFE = {
    "scan_group": {
        "the items change": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            ys.append(x)
        """,
        "the key of an item changes": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            y.key = x + 1
        """,
        "a part of an item changes": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y[0] == x:
                            y[0] = x + 1
        """,
        "a call may change the items": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            x.attach(y)
        """,
        "the sought value changes meanwhile": """
            def f(xs, ys):
                found = {0: 1}
                for x in xs:
                    for y in ys:
                        if y == found[0]:
                            found[0] += 1
        """,
        "the name of the item is read afterwards": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            break
                    print(y)
        """,
        "what is scanned is new in each round": """
            def f(xs):
                for x in xs:
                    for y in x.others:
                        if y.key == x.key:
                            print(y)
        """,
        "others are treated, too": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            print(y)
                        else:
                            print(x)
        """,
        "the sought value is a list": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y == [x]:
                            print(x)
        """,
        "another condition comes first": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y is not None and y.key == x:
                            print(x)
        """,
        "other code runs meanwhile": """
            def f(xs, ys):
                for x in xs:
                    for y in ys:
                        if y.key == x:
                            yield y
        """,
    },
    "sort": {
        "not to the end": """
            def f(xs):
                for i in range(len(xs)):
                    for j in range(len(xs) - 2):
                        if xs[j] > xs[j + 1]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
        """,
        "only ten rounds": """
            def f(xs):
                for i in range(10):
                    for j in range(len(xs) - 1):
                        if xs[j] > xs[j + 1]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
        """,
        "swaps are counted": """
            def f(xs):
                count = 0
                for i in range(len(xs)):
                    for j in range(len(xs) - 1):
                        if xs[j] > xs[j + 1]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
                            count += 1
                return count
        """,
        "each pass is printed": """
            def f(xs):
                for i in range(len(xs)):
                    for j in range(len(xs) - 1):
                        if xs[j] > xs[j + 1]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
                    print(xs)
        """,
        "records of which equal ones change places": """
            def f(xs):
                for i in range(len(xs)):
                    for j in range(len(xs) - 1):
                        if xs[j]["n"] >= xs[j + 1]["n"]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
        """,
        "two lists": """
            def f(xs, ys):
                for i in range(len(xs)):
                    for j in range(len(xs) - 1):
                        if xs[j] > xs[j + 1]:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
                            ys[j], ys[j + 1] = ys[j + 1], ys[j]
        """,
        "it reverses": """
            def f(xs):
                for i in range(len(xs)):
                    for j in range(len(xs) - 1 - i):
                        if i < j:
                            xs[j], xs[j + 1] = xs[j + 1], xs[j]
        """,
    },
    "inline": {
        "no loop": """
            def g(x): return x + 1
            def f(x): return g(x)
        """,
        "a name that means something else there": """
            N = 1
            def g(x): return x + N
            def f(xs):
                N = 2
                return [g(x) for x in xs]
        """,
        "a comprehension's own name": """
            def f(xs):
                n = 1
                def g(x): return x + n
                return [g(n) for n in xs]
        """,
        "computed twice": """
            def g(x): return x * x
            def f(xs): return [g(next(xs)) for _ in range(3)]
        """,
        "computed before another": """
            def g(x, y): return y and x
            def f(xs): return [g(next(xs), x) for x in xs]
        """,
        "bound again": """
            def g(x): return x + 1
            g = cached(g)
            def f(xs): return [g(x) for x in xs]
        """,
        "decorated": """
            @cached
            def g(x): return x + 1
            def f(xs): return [g(x) for x in xs]
        """,
        "recursive": """
            def g(x): return x and g(x - 1)
            def f(xs): return [g(x) for x in xs]
        """,
        "a default that is made once": """
            def g(x, seen=[]): return x in seen
            def f(xs): return [g(x) for x in xs]
        """,
    },
    "cache": {
        "nothing shows what an argument is": """
            def f(grid, n):
                return 1 if n < 2 else f(grid, n - 1) + f(grid, n - 2)
        """,
        "a table for all calls": """
            def f(weights, left, at):
                if at == len(weights): return 0
                if weights[at] > left: return f(weights, left, at + 1)
                return max(f(weights, left, at + 1), 1 + f(weights, left - weights[at], at + 1))
        """,
        "a table for all calls, by name": """
            def f(n, coins):
                return sum(f(n - each, coins=coins) for each in coins) if n > 0 else n == 0
        """,
        "somebody calls it with a list": """
            def f(xs, n):
                return f(xs, n - 1) + f(xs, n - 2) if n > 1 else xs == []
            def g():
                return f([1], 3)
        """,
        "it prints": "def f(n):\n    print(n)\n    return f(n - 1) + f(n - 2) if n > 1 else n",
        "it reads a global": "K = [1]\ndef f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else K",
        "it gives lists": "def f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else [n]",
        "it gives a list by name": """
            def f(n):
                out = []
                if n > 1:
                    out += f(n - 1)
                    out += f(n - 2)
                return out
        """,
        "it takes lists": "def f(n: list[int]):\n    return f(n[1:]) + f(n[2:]) if n else 0",
        "it changes its argument": """
            def f(n):
                n[0] = 1
                return f(n) + f(n)
        """,
        "it is a generator": "def f(n):\n    yield f(n - 1)\n    yield f(n - 2)",
        "no call comes twice": "def f(n):\n    return n * f(n - 1) if n else 1",
        "it is decorated": "@g\ndef f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else n",
        "it is replaced later": """
            def f(n):
                return f(n - 1) + f(n - 2) if n > 1 else n
            f = 3
        """,
        "it calls a builtin of another name": """
            def abs(n): return print(n)
            def f(n):
                return f(n - 1) + f(abs(n) - 2) if n > 1 else n
        """,
        "type is something else": """
            type = id
            def f(n):
                return f(n - 1) + f(n - 2) if n > 1 else n
        """,
        "it remembers by itself": """
            def f(xs, i, memo):
                if i in memo: return memo[i]
                memo[i] = f(xs, i - 1, memo) + f(xs, i - 2, memo)
                return memo[i]
        """,
        "a list is handed on": """
            def f(xs, path, k):
                return k if not path else f(xs, path + [k], k - 1) + f(xs, path, k - 2)
        """,
        "it prints, again": """
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
        "one call only": """
            def f(xs, n):
                return f(xs, n - 1) + xs[n] if n else 0
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
        "it is decorated, again": """
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
        "type is something else, again": """
            type = 1
            def f(xs, n):
                return xs[n] if n < 2 else f(xs, n - 1) + f(xs, n - 2)
        """,
    },
    "growing_set": {
        "a function that outlives the one around": """
            def f(xs):
                seen = []
                def add(x):
                    if x not in seen:
                        seen.append(x)
                for x in xs: add(x)
                return seen, add
        """,
        "a nested function that binds it": """
            def f(xs):
                seen = []
                def add(x):
                    nonlocal seen
                    if x not in seen:
                        seen = seen + [x]
                for x in xs: add(x)
                return seen
        """,
        "a parameter that may be a text": """
            def f(xs, known):
                return [x for x in xs if x in known]
        """,
        "it shrinks": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
                    else: seen.remove(x)
        """,
        "somebody else may change it": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen:
                        g(seen, x)
        """,
        "it is changed under another name": """
            def f(xs):
                seen = []
                also = seen
                for x in xs:
                    if x not in seen:
                        also.append(x)
        """,
        "a closure changes it": """
            def f(xs):
                seen = []
                def add(x): seen.append(x)
                for x in xs:
                    if x not in seen: add(x)
        """,
        "what is added is computed": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(next(x))
        """,
        "lists of lists": """
            def f(xs):
                seen = []
                for x in xs:
                    if [x] not in seen: seen.append(x)
        """,
        "it is not in a loop": """
            def f(x):
                seen = [1, 2, x]
                return x in seen
        """,
        "the list is global": """
            def f(xs):
                global seen
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
        """,
        "all names may be seen": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
                return locals()
        """,
        "set is something else": """
            set = list
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
        """,
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
        "it shrinks, again": """
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
        "somebody else may change it, again": """
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
    "lookup_set": {
        "a part that grows in the loop": """
            def f(xs, table):
                for x in xs:
                    if x not in table["known"]:
                        table["known"].append(x)
        """,
        "a part that has another name": """
            def f(xs, table):
                known = table["known"]
                for x in xs:
                    if x not in table["known"]:
                        known.append(x)
        """,
        "a part of something else each time": """
            def f(xs, tables):
                return [x for x in xs for table in tables if x in table["known"]]
        """,
        "a part that a call may change": """
            def f(self, xs, table):
                for x in xs:
                    if x not in table["known"]:
                        self.learn(x)
        """,
        "a dictionary in a dictionary": """
            def f(xs, table):
                return [table["known"].get(x) for x in xs if x in table["known"]]
        """,
        "others change": """
            def f(ones, others):
                for a in ones:
                    if a in [b.id for b in others]:
                        others.append(a)
        """,
        "their ids change": """
            def f(ones, others):
                for a in ones:
                    if a in [b.id for b in others]:
                        others[0].id = a
        """,
        "calls do more": """
            def f(ones, others):
                for a in ones:
                    if a in [g(b) for b in others]:
                        print(a)
        """,
        "it depends on the loop": """
            def f(ones, others):
                for a in ones:
                    if a in [b + a for b in others]:
                        print(a)
        """,
        "lists": "def f(xs, ys):\n    return [x for x in xs if x in [[y] for y in ys]]",
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
    "scan_index": {
        "it changes": """
            def f(xs):
                for x in xs:
                    if xs.count(x) > 1: xs.remove(x)
        """,
    },
    "hoist": {
        "there may be no text": """
            def f(items, query):
                return [it for it in items if query and query.lower() in it]
        """,
        "it need not be given": """
            def f(items, query=None):
                for it in items:
                    print(query.lower(), it)
        """,
        "it need not be given, by name": """
            def f(items, *, query=None):
                for it in items:
                    print(query.lower(), it)
        """,
        "it says that it may be missing": """
            def f(items, query: str | None):
                for it in items:
                    print(query.lower(), it)
        """,
        "there may be no list": """
            def f(items, xs):
                for i in items:
                    if xs and len(xs) > i: print(i)
        """,
        "it may be something else": """
            def f(items, xs):
                for i in items:
                    if isinstance(xs, list):
                        print(i, len(xs))
        """,
        "otherwise the round ends": """
            def f(items, xs):
                for i in items:
                    if xs is None:
                        continue
                    print(i, len(xs))
        """,
        "there is another list instead": """
            def f(items, xs):
                for i in xs or []:
                    print(i, len(xs))
        """,
        "the loop asks": """
            def f(xs):
                i = 0
                while xs and i < 3:
                    print(i, len(xs))
                    i += 1
        """,
        "what is missing is caught": """
            def f(items, xs):
                for i in items:
                    try:
                        print(i, len(xs))
                    except TypeError:
                        pass
        """,
        "one of two": """
            def f(items, xs):
                return [i + (len(xs) if xs else 0) for i in items]
        """,
        "a condition before": """
            def f(items, xs):
                return [i + len(xs) for i in items if xs is not None]
        """,
        "len is something else": "def f(xs, len):\n    return [x + len(xs) for x in xs]",
        "it grows": """
            def f(xs):
                i = 0
                while i < len(xs):
                    xs.append(i)
                    i += 1
        """,
        "it grows elsewhere": """
            def f(xs):
                i = 0
                while i < len(xs):
                    g(xs)
                    i += 1
        """,
        "it grows under another name": """
            def f(xs):
                ys = xs
                i = 0
                while i < len(xs):
                    ys.append(i)
                    i += 1
        """,
        "it grows by a method that has a name": """
            def f(xs):
                add = xs.append
                i = 0
                while i < len(xs):
                    add(i)
                    i += 1
        """,
        "it is bound in the loop": """
            def f(rows):
                for row in rows:
                    print(len(row))
        """,
        "the condition of a loop that changes it": """
            def f(xs, ys):
                while any(y > len(xs) for y in ys):
                    xs.append(1)
        """,
        "another text each time": """
            def f(words):
                for word in words:
                    print([word.lower() for word in words], word.lower())
        """,
        "there may be nothing": "def f(xs):\n    return [x + len(xs) for x in xs] if xs else []",
        "each gets a list of its own": "def f(xs):\n    return [g(list(xs)) for x in xs]",
        "a loop over something else": "def f(xs, ys):\n    return [y for y in ys if y < max(xs)]",
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
    "deque": {
        "it is shown": """
            def f(xs):
                todo = list(xs)
                while todo:
                    print(f"{todo}")
                    todo.pop(0)
        """,
        "it is returned": """
            def f(xs):
                todo = list(xs)
                while todo[0] > 3:
                    todo.pop(0)
                return todo
        """,
        "it is sliced": """
            def f(xs):
                todo = list(xs)
                while todo:
                    g(todo[1:])
                    todo.pop(0)
        """,
        "the caller's list": """
            def f(todo):
                while todo:
                    todo.pop(0)
        """,
        "it grows while it is gone through": """
            def f(xs):
                todo = list(xs)
                for x in todo:
                    todo.append(x)
                    todo.pop(0)
        """,
        "deque is something else": """
            from double import deque
            def f(xs):
                todo = list(xs)
                while todo:
                    todo.pop(0)
        """,
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
    "append": {
        "what is added may be an array": """
            def f(arrays, n):
                total = [0] * n
                for array in arrays:
                    total = total + array
                return total
        """,
        "the old list is still known": """
            def f(xs):
                out = []
                all = []
                for x in xs:
                    out = out + [x]
                    all.append(out)
                return all
        """,
        "the caller's list": """
            def f(out, xs):
                for x in xs:
                    out = out + [x]
                return out
        """,
        "it is gone through meanwhile": """
            def f(xs):
                out = [1]
                for x in out:
                    out = out + [x]
                    if len(out) > 9: return out
        """,
        "each is given away": """
            def f(xs):
                out = []
                for x in xs:
                    out = out + [x]
                    yield out
        """,
    },
    "prepend": {
        "a list that another function reads in between": """
            def visit(n, out):
                if n: visit(n - 1, out)
                out.insert(0, n)
            def f():
                out = []
                for n in range(3):
                    visit(n, out)
                    print(out)
                return out
        """,
        "a parameter of the caller's": """
            def visit(n, out):
                if n: visit(n - 1, out)
                out.insert(0, n)
            def f(out):
                visit(3, out)
                return out
        """,
        "a recursion that reads the list": """
            def visit(n, out):
                if n: visit(n - 1, out)
                if n not in out: out.insert(0, n)
            def f():
                out = []
                visit(3, out)
                return out
        """,
        "a recursion that is handed on": """
            def visit(n, out):
                if n: visit(n - 1, out)
                out.insert(0, n)
            def f(xs):
                out = []
                visit(3, out)
                return out, visit
        """,
        "returned before the end": """
            def f(graph):
                order = []
                def visit(n):
                    if n: visit(n - 1)
                    order.insert(0, n)
                for n in graph:
                    visit(n)
                    if n > 3: return order
                return order
        """,
        "it is read": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    print(p[0])
        """,
        "it grows behind, too": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    p.append(x)
                return p
        """,
        "somebody else's": """
            def f(xs, p):
                for x in xs:
                    p.insert(0, x)
        """,
        "somebody has it": """
            def f(xs):
                p = []
                keep(p)
                for x in xs:
                    p.insert(0, x)
        """,
        "given in the loop": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    if x:
                        return p
        """,
        "what is raised is caught": """
            def f(xs):
                p = []
                try:
                    for x in xs:
                        p.insert(0, int(x))
                except ValueError:
                    return p
        """,
        "bound before another loop": """
            def f(rows):
                p = []
                for row in rows:
                    for x in row:
                        p.insert(0, x)
                    print(p)
        """,
        "elsewhere": "def f(xs):\n    p = []\n    for x in xs:\n        p.insert(1, x)",
    },
    "join": {
        "a number": """
            def f(xs):
                n = 0
                for x in xs: n += x
                return n
        """,
        "it is read in the loop": """
            def f(xs):
                s = ""
                for x in xs:
                    s += x
                    if len(s) > 80:
                        return s
        """,
        "it is added to itself": """
            def f(xs):
                s = "a"
                for x in xs:
                    s += s
                return s
        """,
        "somebody catches what goes wrong": """
            def f(xs):
                s = ""
                try:
                    for x in xs:
                        s += x
                except TypeError:
                    pass
                return s
        """,
        "it may be no text": """
            def f(xs, s):
                for x in xs:
                    s += x
                return s
        """,
        "it is shared": """
            def f(xs):
                s = ""
                def show(): print(s)
                for x in xs:
                    s += x
                    show()
                return s
        """,
        "another scope's": """
            def f(xs):
                global s
                s = ""
                for x in xs:
                    s += x
        """,
        "at both ends": """
            def f(xs):
                s = ""
                for x in xs:
                    s = x + s
                    s += x
                return s
        """,
        "a list": "def f(xs):\n    s = []\n    for x in xs:\n        s = x + s\n    return s",
        "both are it": "def f(xs):\n    s = 'a'\n    for x in xs:\n        s = x + s + s",
        "the loop may be left otherwise": """
            def f(rows):
                for row in rows:
                    s = ""
                    for x in row:
                        s += x
                    else:
                        continue
                return s
        """,
    },
    "module_set": {
        "it grows": """
            KNOWN = ["a", "b", "c"]
            def f(x):
                KNOWN.append(x)
                return x in KNOWN
        """,
        "a parameter has its name": """
            KNOWN = ["a", "b", "c"]
            def f(x, KNOWN): return x in KNOWN
        """,
        "the module itself changes it": """
            KNOWN = ["a", "b", "c"]
            KNOWN += ["d"]
            def f(x): return x in KNOWN
        """,
    },
    "pattern": {
        "not constant": "import re\ndef f(x, p):\n    return re.sub(p, 'a', x)",
        "re is something else": "import regex as re\ndef f(x):\n    return re.sub('a', 'b', x)",
        "re is somebody's": "import re\ndef f(x, re):\n    return re.sub('a', 'b', x)",
        "flags by a name": "import re\ndef f(x, i):\n    return re.sub('a', 'b', x, flags=i)",
        "no pattern at all": """
            import re
            def f(text):
                try:
                    return re.sub("(", "", text)
                except re.error:
                    return re.findall("a" + "[", text)
        """,
        "it is bound later": "import re\ndef f(x):\n    return re.sub(P, '', x)\nP = 'a'",
        "it is bound twice": "import re\nP = 'a'\nP = 'b'\ndef f(x):\n    re.sub(P, '', x)",
        "flags of what is compiled": """
            import re
            P = re.compile("a")
            def f(x):
                return re.sub(P, "", x, flags=re.I)
        """,
    },
    "pattern_cache": {
        "constant": "import re\ndef f(x):\n    return re.sub('a', 'b', x)",
        "flags by a name": "import re\ndef f(x, p, i):\n    return re.sub(p, 'b', x, flags=i)",
        "arguments that aren't seen": "import re\ndef f(x):\n    return re.sub(*x)",
        "re is something else": "import regex as re\ndef f(p, x):\n    return re.search(p, x)",
        "the module comes later": "def f(p, x):\n    return re.search(p, x)\nimport re",
        "functools is something else": """
            import re
            functools = None
            def f(p, x):
                return re.search(p, x)
        """,
    },
    "module_constant": {
        "a type of its own": """
            def f(int, x):
                return {str: 1, bytes: 2, int: 3}[x]
        """,
        "a type of the module's": """
            def f(x):
                return {str: 1, bytes: 2, int: 3}[x]
            int = 3
        """,
        "given away": "def f():\n    table = {1: 2, 3: 4, 5: 6}\n    return table",
        "handed on": "def f():\n    table = [1, 2, 3]\n    g(table)",
        "changed": "def f(x):\n    t = {1: 2, 3: 4, 5: 6}\n    t[x] = 1\n    return len(t)",
        "changed by a method": "def f(x):\n    t = [1, 2, 3]\n    t.append(x)\n    return len(t)",
        "what is in it may be changed": """
            def f(x):
                table = {1: [], 2: [], 3: []}
                return table[x]
        """,
        "it depends": "def f(x):\n    table = {1: x, 3: 4, 5: 6}\n    return table[1]",
        "bound twice": "def f(x):\n    t = [1, 2, 3]\n    t = [x]\n    return t[0]",
        "seen from within": "def f():\n    t = [1, 2, 3]\n    return lambda x: t[x]",
        "a few": "def f(x):\n    return {1: 2}[x]",
        "by another name": "def f(x):\n    t = [1, 2, 3]\n    u = t\n    u.pop()\n    return t[0]",
        "the module comes later": """
            def f(x):
                return {"a": operator.add, "b": operator.sub, "c": operator.mul}[x]
            import operator
        """,
    },
    "min_max": {
        "by a key": "def f(a, b):\n    return min(a, b, key=abs)",
        "of a list": "def f(a):\n    return min(a)",
        "not seen": "def f(a):\n    return min(*a, 3)",
        "somebody's": "from numpy import min\ndef f(a, b):\n    return min(a, b)",
        "many": "def f(a, b, c, d):\n    x = min(a, b, c, d)\n    return x",
        "a comment in it": "def f(a, b):\n    x = min(a[0],  # first\n        b[0])\n    return x",
    },
    "listing": {
        "it ends from within": """
            def f(xs, more):
                return ",".join(more.__next__() for x in xs)
        """,
        "it may stop early": "def f(xs):\n    return any(x for x in xs)",
        "a key in between": "def f(xs):\n    return max((x for x in xs), key=g)",
        "it ends itself": "def f(xs):\n    return sum(next(xs) for _ in xs)",
        "it waits": "async def f(xs):\n    return sum(x async for x in xs)",
        "somebody's": "from numpy import sum\ndef f(xs):\n    return sum(x for x in xs)",
    },
    "constant_set": {
        "equal to one of two things": """
            def f(x, y):
                return x == 1 or x == 2 or y == 3
        """,
        "not equal to one of several": """
            def f(x):
                return x != 1 or x != 2 or x != 3
        """,
        "equal to one of several types": """
            def f(x):
                return x == 1 or x == "a" or x == None
        """,
        "a list that is compared": """
            def f(x):
                x.append(1)
                return x == 1 or x == 2 or x == 3
        """,
        "too few": "def f(x):\n    return x in (1, 2)",
        "not constant": "def f(x, y):\n    return x in (1, 2, y)",
        "it may be a list": """
            def f(shown):
                if shown in ["default", "always", True]: return 1
                return list(shown)
        """,
        "it may be a table": """
            def f(shown):
                if shown in ("default", "always", "never"): return 1
                return [x for x in shown]
        """,
    },
    "ruff": {
        "the last is read by another function": """
            def f(xs):
                def last():
                    return x
                out = []
                for x in xs:
                    out.append(-x)
                return out, last
        """,
        "somebody reads what there is so far": """
            def f(xs):
                try:
                    out = []
                    for x in xs:
                        out.append(look(x))
                finally:
                    print(out)
        """,
    },
}
CASES = [(name, why) for name, cases in UNSAFE.items() for why in cases]


@pytest.mark.parametrize(("name", "why"), CASES)
def test_code_that_may_not_be_safe_to_change_stays_unchanged(name, why):
    text = textwrap.dedent(UNSAFE[name][why])
    assert transform(text, name).text == text


@pytest.mark.parametrize("each", CATALOG, ids=lambda each: each.name)
@pytest.mark.parametrize("text", ["", "x = 1\n", "def f(:\n", "\0", "def f(): s = ''\n", "é = 'ü'"])
def test_nothing_comes_of_nothing(each, text):
    assert transform(text, each.name).text == text


def test_statements_that_share_a_line_are_left_alone():
    text = "def f(xs):\n    s = ''; t = 1\n    for x in xs: s += x\n    return s\n"
    assert transform(text, "join").text == text
    text = "def f(xs):\n    s = ''\n    for x in xs: s += x\n    return s\n"
    assert transform(text, "join").text == text


def test_a_star_import_may_bring_any_name():
    text = "from numpy import *\ndef f(a, b):\n    return min(a, b)\n"
    assert transform(text, "min_max").text == text


def test_files_that_can_not_be_transformed_are_reported():
    assert get_refusal("def f(:\n") == "it can't be parsed"
    assert get_refusal("# coding: latin-1\nx = 1\n") == "it is written in latin-1"
    assert "larger" in get_refusal("x = 1\n" * 100_000)
    assert get_refusal("# -*- coding: utf-8 -*-\nx = 1\n") is None


@pytest.mark.parametrize("depth", [200, 700, 3000])
def test_what_is_nested_too_deeply_is_left_alone(depth):
    text = "def f(xs):\n    s = ''\n    for x in xs:\n        s += x\n    return s" + " + s" * depth
    new = transform(text, "join").text
    assert new == text or "s_parts" in new


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hoist", "def f(xs, y=None):\n    for i in range(9):\n        if xs[i]: print(len(xs))\n"),
        ("hoist", "def f(xs=None):\n    for x in xs:\n        print(x, len(xs))\n"),
        ("hoist", "def f(xs=None):\n if xs is None: xs = []\n for y in 'ab':\n  print(len(xs))\n"),
        ("hoist", "def f(xs, i):\n    while i < len(xs) and xs[i] < len(xs):\n        i += 1\n"),
        ("constant_set", "def f(x, y):\n    return x.a[0] in (1, 2, 3, 4) or g(y) in [1, 2, 3]\n"),
        ("cache", "def f(a: str, n):\n    return f(a, n - 1) + f(a, n - 2) if n > 1 else a[n]\n"),
        ("cache", "def f(a, b):\n    return a and b and max(f(a[1:], b), f(a, b[1:]))\n"),
    ],
)
def test_code_that_is_safe_to_change_is_changed(name, text):
    assert transform(text, name).notes


def test_equal_numbers_of_different_types_are_remembered_apart():
    text = "def f(x, n):\n    return x if n < 1 else f(x, n - 1) + f(x, n - 2)\n"
    names = {}
    exec(transform(text, "cache").text, names)
    assert [type(names["f"](x, 5)) for x in (1, 1.0, 1)] == [int, float, int]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "hoist",
            "def f(self, n):\n xs = list(n)\n for x in n:\n  self.tell(x)\n  print(len(xs))\n",
            "xs_len = len(xs)",
        ),
        (
            "hoist",
            "def g(x):\n return x + 1\ndef f(xs):\n for x in xs:\n  print(g(x) / len(xs))\n",
            "xs_len = len(xs)",
        ),
        (
            "growing_set",
            "def f(xs, more: list):\n a = []\n for x in xs:\n"
            "  if x in a:\n   print(x)\n  a.extend(more)\n",
            "a_set.update(more)",
        ),
        (
            "growing_set",
            "from a import g\ndef f(xs, known: list):\n return [g(x) for x in xs if x in known]\n",
            "known_set = set(known)",
        ),
        ("ruff", "def f(s):\n return getattr(s, 'x'), 'a b'.split()\n", "return s.x, ['a', 'b']"),
        ("ruff", "def f(a, b):\n return '-'.join([a, b]), 'a'.encode()\n", "f'{a}-{b}', b'a'"),
        ("module_set", "_A = ['a', 'b', 'c']\ndef f(x):\n    return x in _A\n", "x in _A_SET"),
        ("ruff", "def f(xs: list):\n    return any([x > 1 for x in xs])\n", "any(x > 1 for"),
    ],
)
def test_a_change_that_surely_keeps_the_result_is_made(name, text, expected):
    assert expected in transform(text, name).text


LOOP = "def f(xs):\n    t = ''\n    for x in xs:\n        t += x\n    return t\n"
UNUSUAL_LAYOUTS = {
    "a form feed before an indent": LOOP.replace("    t = ''", "\x0c    t = ''"),
    "no blank before a parenthesis": "y = () if 0 else(lambda:())\n" + LOOP,
    "a string of several lines in what is moved": LOOP.replace("+= x", '+= x + """\n  a\nb"""'),
    "a backslash at the end of a line": LOOP.replace("+= x", "+= \\\n    x"),
}


@pytest.mark.parametrize("why", UNUSUAL_LAYOUTS)
def test_unusual_layouts_are_transformed_as_well(why):
    text = UNUSUAL_LAYOUTS[why]
    new = transform(text, "join").text
    assert "t_parts" in new
    before, after = {}, {}
    exec(text, before)
    exec(new, after)
    assert after["f"](["a", "b"]) == before["f"](["a", "b"])
