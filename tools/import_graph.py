"""Measure how the packages of a source tree depend on each other.

    python tools/import_graph.py [SOURCE ...]        default: src

Prints, for each tree: modules and lines by package, names that cross packages, modules that are
imported from outside their package, and class names and file names that occur more than once.

A name that crosses packages is one that another package imports. A namespace (a module or
sub-package that a facade lists, such as `fairtrial.core.events`) counts as one name; how many names
are used through namespaces is printed beside it, so that nothing is hidden in them.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path


def read_tree(source: Path) -> dict[str, tuple[Path, ast.Module]]:
    """Return every module of a tree by its dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = path, ast.parse(path.read_text("utf-8"))
    return modules


def package_of(module: str) -> str:
    """Return the package that a module belongs to: the second part of its name."""
    parts = module.split(".")
    if parts[0] != "fairtrial":
        return parts[0]
    return parts[1] if len(parts) > 1 else "fairtrial"


def crossing_imports(modules: dict[str, tuple[Path, ast.Module]]) -> set[tuple[str, str, str]]:
    """Return (importing package, imported module, name) of each import between packages."""
    tops = {name.partition(".")[0] for name in modules}
    crossing = set()
    for importer, (_, tree) in modules.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
                continue
            if node.module.partition(".")[0] not in tops:
                continue
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                module, name = (full, "*") if full in modules else (node.module, alias.name)
                if package_of(module) not in (package_of(importer), "fairtrial", "_facade"):
                    crossing.add((package_of(importer), module, name))
    return crossing


def names_in_namespaces(modules: dict[str, tuple[Path, ast.Module]]) -> set[tuple[str, str]]:
    """Return (namespace, name) of each name that another package uses as `namespace.name`."""
    used = set()
    for importer, (_, tree) in modules.items():
        namespaces = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    if full in modules and package_of(full) != package_of(importer):
                        namespaces[alias.asname or alias.name] = full
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Attribute) else None
            if isinstance(value, ast.Name) and value.id in namespaces:
                used.add((namespaces[value.id], node.attr))
    return used


def repeated(names: list[str]) -> int:
    """Return how many names occur more than once."""
    return sum(count > 1 for count in Counter(names).values())


def main() -> None:
    """Print the figures of each tree that is named on the command line."""
    for source in map(Path, sys.argv[1:] or ["src"]):
        modules = read_tree(source)
        crossing = crossing_imports(modules)
        lines: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for name, (path, _) in modules.items():
            lines[package_of(name)] += len(path.read_text("utf-8").splitlines())
            files[package_of(name)] += 1
        classes = [
            node.name
            for _, tree in modules.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        ]
        paths = [path.name for path, _ in modules.values() if path.name != "__init__.py"]
        print(f"{source}: {len(modules)} modules, {sum(lines.values()):,} lines")
        for package in sorted(lines):
            print(f"  {package:20} {files[package]:4} modules {lines[package]:7,} lines")
        seen: defaultdict[str, set[str]] = defaultdict(set)
        for _, module, _ in crossing:
            seen[package_of(module)].add(module)
        names = {(module, name) for _, module, name in crossing}
        by_package = Counter(package_of(module) for module, _ in names)
        print(f"  names that cross packages: {len(names)}")
        print(
            "    " + ", ".join(f"{package} {by_package[package]}" for package in sorted(by_package))
        )
        print(f"  names used through namespaces: {len(names_in_namespaces(modules))}")
        outside = ", ".join(f"{package} {len(seen[package])}" for package in sorted(seen))
        print(f"  modules imported from outside their package: {outside}")
        print(f"  class names with several homes: {repeated(classes)}")
        print(f"  file names with several homes: {repeated(paths)}")


if __name__ == "__main__":
    main()
