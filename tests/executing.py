"""What in a program could execute what it reads, found in its syntax tree, under whatever name it is imported."""

import ast
from collections.abc import Iterator
from functools import cache

MODULES = {
    *(
        "pickle",
        "_pickle",
        "marshal",
        "shelve",
        "dill",
        "cloudpickle",
        "joblib",
        "jsonpickle",
        "multiprocessing.reduction",
    ),
    *("multiprocessing.connection", "builtins", "runpy", "codeop", "imp", "zipimport", "timeit", "pty"),
    *(
        "ctypes",
        "importlib.util",
        "importlib.machinery",
        "logging.config",
        "jinja2",
        "ruamel",
        "torch.package",
        "torch.hub",
    ),
    *("torch.serialization", "torch.distributed.checkpoint", "torch.utils.cpp_extension", "torch.utils.model_zoo"),
}
"""Nothing of them may be used. (The rest of multiprocessing pickles what our own processes tell each other.)"""
FUNCTIONS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput", "sys.modules"),
    *("subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "importlib.import_module", "torch.load"),
    *("torch.jit.load", "torch.ops.load_library", "torch.classes.load_library", "pandas.read_pickle", "pandas.eval"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.full_load_all", "yaml.unsafe_load", "yaml.unsafe_load_all"),
    *("code.interact", "code.InteractiveInterpreter", "code.InteractiveConsole", "pydoc.locate", "pydoc.resolve"),
    *(
        "yaml.Loader",
        "yaml.FullLoader",
        "yaml.UnsafeLoader",
        "types.FunctionType",
        "types.CodeType",
        "pkgutil.resolve_name",
    ),
}
BEGINNINGS = ("os.exec", "os.spawn", "os.posix_spawn")
DOORS = {"__builtins__", "__globals__", "__subclasses__", "__loader__", "__code__", "__dict__"}
HANDED_ON = {
    "torch",
    "torch.jit",
    "torch.ops",
    "numpy",
    "numpy.lib",
    "os",
    "sys",
    "subprocess",
    "importlib",
    "yaml",
    "types",
}
"""Modules that may not be used as values: what is then asked of them cannot be seen."""
OPTIONS = {"shell", "allow_pickle", "trust_remote_code"}
"""Arguments that may only be False."""
PLACES = {
    **{("numpy.load", 2): "allow_pickle", ("numpy.lib.format.read_array", 1): "allow_pickle"},
    **{(f"subprocess.{name}", 8): "shell" for name in ("Popen", "run", "call", "check_call", "check_output")},
}
"""Where they stand when they are not named."""
Names = dict[str, set[str]]


def executing(program: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use. To name a function is to use it: it may be called under another name later."""
    tree, names = ast.parse(program), Names()
    for name, whole in _imported(tree):
        names.setdefault(name, set()).add(whole)
    asked = {id(module) for node in ast.walk(tree) for module in _asked(node)}
    for node in ast.walk(tree):
        for name in _mentioned(node, names):
            if _forbidden(name) or (name in HANDED_ON and isinstance(node, ast.expr) and id(node) not in asked):
                yield getattr(node, "lineno", 0), name
        for option, value in _options(node, names):
            if option in OPTIONS and not (isinstance(value, ast.Constant) and value.value is False):
                yield value.lineno, f"{option}="


@cache
def _forbidden(name: str) -> bool:
    parts = name.split(".")
    # Also as our own module's `torch.load`; the safetensors' one is harmless.
    known = parts[:1] if parts[0] == "safetensors" else parts
    ends = {".".join(parts[first:]) for first in range(len(known) - 1)}
    beginnings = {".".join(parts[:last]) for last in range(1, len(parts) + 1)}
    return (
        name in FUNCTIONS
        or bool(ends & FUNCTIONS)
        or bool(beginnings & MODULES)
        or name.startswith(BEGINNINGS)
        or parts[-1] in DOORS
    )


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What each imported name stands for in full; it may stand for several things."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _asked(node: ast.AST) -> Iterator[ast.AST]:
    """Of which thing an attribute is asked whose name can be seen."""
    if isinstance(node, ast.Attribute):
        yield node.value
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
    ):
        yield node.args[0]


def _mentioned(node: ast.AST, names: Names) -> Iterator[str]:
    """The full names that a node brings in or refers to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        whole = {name for name in FUNCTIONS if name.startswith(f"{node.module}.")}
        for alias in node.names:
            yield from whole if alias.name == "*" else [f"{node.module}.{alias.name}"]
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _full(node, names)
    elif isinstance(node, ast.Call) and node.args:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("eval", "exec"):
            yield node.func.attr  # of a table, say; a model's own has no arguments
        for module in _asked(node):
            yield from (f"{name}.{node.args[1].value}" for name in _full(module, names))  # type: ignore[attr-defined]


def _full(node: ast.AST, names: Names) -> set[str]:
    """`p.loads` -> `pickle.loads`, after `import pickle as p`; of what is computed, nothing is known: `?`."""
    if isinstance(node, ast.Name):
        return names.get(node.id, {node.id})
    if isinstance(node, ast.Attribute):
        return {f"{name}.{node.attr}" for name in _full(node.value, names)}
    return {"?"}


def _options(node: ast.AST, names: Names) -> Iterator[tuple[str, ast.expr]]:
    """Arguments by name, those in a dictionary too, and by their place."""
    if isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant))
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
        yield str(node.slice.value), node
    elif isinstance(node, ast.Call):
        for (function, place), option in PLACES.items():
            if function in _full(node.func, names) and len(node.args) > place:
                yield option, node.args[place]
