"""numba-cuda, made ready for the rules: a name that NumPy dropped, functions of NumPy that it does not know."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 names it on import, NumPy 2.5 has dropped it
    setattr(np, "row_stack", np.vstack)  # noqa: B010

from numba import config, cuda

# Whether Python plays the GPU and runs kernels line by line (NUMBA_ENABLE_CUDASIM=1).
IS_SIMULATED = bool(config.ENABLE_CUDASIM)


def _teach_rounding() -> None:
    """Lower NumPy's square root and roundings of a float32 to the functions of CUDA's own library."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.cuda.ufuncs import ufunc_db

    def lowered_to(name: str) -> Any:
        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.FloatType(), [ir.FloatType()])
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(function, args)

        return lower

    known = ufunc_db()
    for function, name in (
        (np.sqrt, "__nv_sqrtf"),
        (np.floor, "__nv_floorf"),
        (np.ceil, "__nv_ceilf"),
        (np.rint, "__nv_rintf"),
    ):
        known.setdefault(function, {"f->f": lowered_to(name)})


def _forget_negative_indices() -> None:
    """Let an index be what it says: no rule counts from an array's end.

    Asking whether it does is a seventh of the longest kernel, and a GPU waits for instructions as it does for data.
    """
    from numba.core import types
    from numba.cuda.np import arrayobj  # type: ignore[import-not-found]

    def as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)

    arrayobj.fix_integer_index = as_it_is


_small: set[str] = set()  # names of kernels that are compiled for size


def make_small(kernel: str) -> None:
    """Let what is compiled for a kernel of this name be optimised for size (LLVM's `optsize`)."""
    _small.add(kernel)


def _teach_size() -> None:
    """numba-cuda knows no such option; what it hands to CUDA's compiler, a text, says it for each function."""
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir

    def compile_some_small(modules: Any, **options: Any) -> Any:
        modules = [modules] if isinstance(modules, str) else modules
        if any(re.search(rf"^define void @.*?\d({'|'.join(_small)})B", module, re.MULTILINE) for module in modules):
            modules = [re.sub(r"^(define .*\))([^()]*)$", r"\1 optsize\2", module, flags=re.M) for module in modules]
        return compile_ir(modules, **options)

    nvvm.compile_ir = compile_some_small


if not IS_SIMULATED:
    _teach_rounding()
    _teach_size()
    _forget_negative_indices()


def _make_load_eight() -> Any:
    """load_eight(table, number): the eight numbers of an entry of a piece-major table, by two wide loads."""
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
    """store_four(array, k, a, b, c, d): four numbers into array[k : k + 4]; k = 4, 8, ...; no cache keeps them."""
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
    """A whole number that the compiler knows not to be negative, which makes indices and divisions simpler."""
    return np.int64(np.uint32(number))


def _store_one_by_one(array: Any, k: Any, *numbers: Any) -> None:
    for place, number in enumerate(numbers, k):
        array[place] = number


def _load_one_by_one(table: Any, number: Any) -> Any:
    return tuple(table[line, number] if line < table.shape[0] else np.float32(0.0) for line in range(8))


load_eight = _load_one_by_one if IS_SIMULATED else _make_load_eight()
store_four = _store_one_by_one if IS_SIMULATED else cuda.jit(device=True)(_make_store_four())

natural = _natural if IS_SIMULATED else cuda.jit(device=True)(_natural)

__all__ = ["IS_SIMULATED", "cuda", "load_eight", "make_small", "natural", "store_four"]
