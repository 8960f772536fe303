"""CUDA kernels: numba-cuda with what the rules need, which is in force only while our own kernels compile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from roadworthy.kernels.installed import load_numba

config, float32, int32, int64 = (getattr(load_numba(), name) for name in ("config", "float32", "int32", "int64"))

# Whether Python runs kernels line by line, in numba-cuda's simulator (NUMBA_ENABLE_CUDASIM=1).
IS_SIMULATED = bool(config.ENABLE_CUDASIM)


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _import_cuda() -> Any:
    """Import numba-cuda 0.30, which asks NumPy for a name that NumPy 2.5 lacks."""
    is_missing = not hasattr(np, "row_stack")
    if is_missing:
        setattr(np, "row_stack", np.vstack)  # noqa: B010
    try:
        from numba import cuda

        if not IS_SIMULATED:
            import numba.cuda.np.arrayobj  # type: ignore[import-not-found]  # noqa: F401
        return cuda
    finally:
        if is_missing:
            delattr(np, "row_stack")


cuda = _import_cuda()


def compile_kernel(function: Callable[..., Any], registers: int | None, small: bool, device: bool) -> Any:
    """Make a kernel, or a part of one; see `decorators.cuda_kernel`."""
    if device or IS_SIMULATED:
        return cuda.jit(device=device)(function)
    kernel = cuda.jit(cache=True, **({} if registers is None else {"max_registers": registers}))(function)
    kernel.rule_semantics = partial(rule_semantics, small)
    compile_one = kernel.compile

    def compile_with_semantics(signature: Any) -> Any:
        with rule_semantics(small):
            return compile_one(signature)

    kernel.compile = compile_with_semantics
    return kernel


def compile_to_ptx(kernel: Any, types: tuple[Any, ...], compute_capability: tuple[int, int]) -> str:
    """Return the PTX of a kernel for arguments of these types; no GPU is needed."""
    with kernel.rule_semantics():
        ptx, _ = cuda.compile_ptx(kernel.py_func, types, cc=compute_capability)
        return str(ptx)


@contextmanager
def rule_semantics(small: bool = False) -> Iterator[None]:
    """Compile as rules need it: NumPy's roundings of float32, indices as they are, and `small` kernels for size."""
    from numba.cuda.core.compiler_lock import global_compiler_lock  # type: ignore[import-not-found]
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.np import arrayobj
    from numba.cuda.ufuncs import ufunc_db

    known = ufunc_db()
    missing = {function: lower for function, lower in _roundings().items() if function not in known}
    with global_compiler_lock, ExitStack() as stack:
        known.update(missing)
        for function in missing:
            stack.callback(known.pop, function)
        stack.enter_context(_replaced(arrayobj, "fix_integer_index", _index_as_it_is))
        if small:
            stack.enter_context(_replaced(nvvm, "compile_ir", partial(_compile_for_size, nvvm.compile_ir)))
        yield


def _roundings() -> dict[Any, dict[str, Any]]:
    """Return the functions of CUDA's library for NumPy's square root and roundings of a float32."""
    from llvmlite import ir  # type: ignore[import-untyped]

    def lowered_to(name: str) -> Any:
        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.FloatType(), [ir.FloatType()])
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(function, args)

        return {"f->f": lower}

    names = {np.sqrt: "__nv_sqrtf", np.floor: "__nv_floorf", np.ceil: "__nv_ceilf", np.rint: "__nv_rintf"}
    return {function: lowered_to(name) for function, name in names.items()}


def _index_as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Convert an index without asking whether it counts from the end, which no rule's index does.

    Asking is a seventh of the longest kernel, and a GPU waits for instructions as it does for data.
    """
    from numba.core import types

    return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)


def _compile_for_size(compile_ir: Any, modules: Any, **options: Any) -> Any:
    """Compile with LLVM's attribute `optsize`, for which numba-cuda has no option, on every function."""
    modules = [modules] if isinstance(modules, str) else modules
    return compile_ir(
        [re.sub(r"^(define .*\))([^()]*)$", r"\1 optsize\2", module, flags=re.M) for module in modules], **options
    )


def _make_load_eight() -> Any:
    """Return load_eight(table, number): the eight numbers of an entry of a piece-major table, by two wide loads."""
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing_context: Any, table: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            long = partial(ir.Constant, ir.IntType(64))
            four, numbers = ir.VectorType(ir.FloatType(), 4), []
            for part in range(2):
                place = builder.add(builder.mul(args[1], long(8)), long(4 * part))
                pointer = builder.bitcast(builder.gep(data, [place]), four.as_pointer(data.type.addrspace))
                loaded = builder.load(pointer, align=16)
                numbers += [builder.extract_element(loaded, ir.Constant(ir.IntType(32), k)) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(types.float32, 8)(table, types.intp), generate

    def load_eight(table: Any, number: Any) -> Any:
        return load(table, number)

    return load_eight


def _make_store_four() -> Any:
    """Return store_four(array, k, a, b, c, d): write four numbers to array[k : k + 4], past the caches; 4 divides k."""
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, array: Any, k: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            number = ir.FloatType()
            kind = ir.FunctionType(ir.VoidType(), [data.type, *[number] * 4])
            code = ir.InlineAsm(kind, "st.global.cs.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f", side_effect=True)
            builder.call(code, [builder.gep(data, [args[1]]), *args[2:]])
            return context.get_dummy_value()

        return types.void(array, types.intp, *[types.float32] * 4), generate

    def store_four(array: Any, k: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        store(array, k, a, b, c, d)

    return store_four


def _natural(number: Any) -> Any:
    """Return a number that the compiler knows not to be negative, which makes indices and divisions simpler."""
    return np.int64(np.uint32(number))


def _store_one_by_one(array: Any, k: Any, *numbers: Any) -> None:
    for place, number in enumerate(numbers, k):
        array[place] = number


def _load_one_by_one(table: Any, number: Any) -> Any:
    return tuple(table[line, number] if line < table.shape[0] else np.float32(0.0) for line in range(8))


load_eight = _load_one_by_one if IS_SIMULATED else _make_load_eight()
store_four = _store_one_by_one if IS_SIMULATED else cuda.jit(device=True)(_make_store_four())
natural = _natural if IS_SIMULATED else cuda.jit(device=True)(_natural)
