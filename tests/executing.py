"""What in a program could execute what it reads, found in its syntax tree, under whatever name it is imported."""

import ast
from collections.abc import Iterator

UNPICKLERS = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy", "torch.package"}
"""Modules of which nothing may be used. (multiprocessing pickles what our own processes tell each other.)"""
FUNCTIONS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput"),
    *("subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "torch.load", "torch.serialization.load"),
    *("torch.jit.load", "torch.hub.load", "pandas.read_pickle", "yaml.load", "yaml.load_all", "yaml.full_load"),
    *("yaml.full_load_all", "yaml.unsafe_load", "yaml.unsafe_load_all"),
}
OPTIONS = {"shell", "allow_pickle", "trust_remote_code"}
"""Arguments that may only be False."""


def executing(program: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use. To name a function is to use it: it may be called under another name later."""
    tree = ast.parse(program)
    names = dict(_imported(tree))
    for node in ast.walk(tree):
        for name in _mentioned(node, names):
            if name in FUNCTIONS or any(f"{name}.".startswith(f"{module}.") for module in UNPICKLERS):
                yield getattr(node, "lineno", 0), name
        for option, value in _options(node):
            if option in OPTIONS and not (isinstance(value, ast.Constant) and value.value is False):
                yield value.lineno, f"{option}="


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What each imported name stands for in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _mentioned(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """The full names that a node brings in or refers to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        whole = {name for name in FUNCTIONS if name.startswith(f"{node.module}.")}
        for alias in node.names:
            yield from whole if alias.name == "*" else [f"{node.module}.{alias.name}".removeprefix("builtins.")]
    elif isinstance(node, ast.Name | ast.Attribute):
        yield _full(node, names)
    elif isinstance(node, ast.Call) and node.args:
        function, last = _full(node.func, names), node.args[-1]
        if isinstance(last, ast.Constant) and function == "importlib.import_module":
            yield str(last.value)
        elif len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and function == "getattr":
            yield f"{_full(node.args[0], names)}.{node.args[1].value}".removeprefix("builtins.")


def _full(node: ast.AST, names: dict[str, str]) -> str:
    """`p.loads` -> `pickle.loads`, after `import pickle as p`; of what is computed, nothing is known: `?`."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_full(node.value, names)}.{node.attr}".removeprefix("builtins.")
    return "?"


def _options(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Arguments by name, those in a dictionary too."""
    if isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant))
