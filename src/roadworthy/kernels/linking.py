"""Emit machine code for rules only once, as part of the function that Python calls.

Numba optimizes each function together with everything it calls, and emits machine code for it, before the next caller
does the same with all of it again. For a chain of rules the time is quadratic, and a parallel loop takes four times
that. Here rules, and the parts of a parallel loop, stay in LLVM's intermediate code: the outermost function links
them, optimizes everything and emits it.

This depends on the internals of Numba 0.68: `pipeline_class`, code libraries and the lowering passes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm  # type: ignore[import-untyped]
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NativeParforLowering


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that others link. It is neither optimized nor emitted alone."""

    _shared_module: Any

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return null: nothing can be called."""
        return 0

    @property
    def has_dynamic_globals(self) -> bool:
        return any(library.has_dynamic_globals for library in self._called() if not isinstance(library, LinkedLibrary))

    def _get_module_for_linking(self) -> Any:
        """Return this code and all that it calls, each once, as definitions that may be merged with equal ones."""
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in self._called():
                is_linked = isinstance(library, LinkedLibrary)
                module.link_in(library._final_module if is_linked else library._get_module_for_linking(), preserve=True)
            for function in module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module

    def _called(self) -> list[Any]:
        """Return the libraries of everything that is called from here, directly or not."""
        found: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in found:
                found[library] = None
                self._reload_init.update(library._reload_init)
                if isinstance(library, LinkedLibrary):
                    waiting.extend(library._linking_libraries)
        return list(found)


class WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that Python calls. What it links becomes internal, so LLVM can drop arguments and inline single calls."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()


@register_pass(mutates_CFG=False, analysis_only=False)
class _Announce(LoweringPass):  # type: ignore[misc]
    """Make a rule known to its callers, as Numba does with functions that it has emitted."""

    _name = "announce_rule"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.cr = state.cr._replace(cfunc=object())  # an identity; nothing calls it
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _ParallelLowering(NativeParforLowering):  # type: ignore[misc]
    """Lower a parallel loop: link its parts, and emit only the whole."""

    _name = "parallel_lowering"

    def run_pass(self, state: Any) -> bool:
        context, codegen = state.targetctx, state.targetctx.codegen()
        state.library = WholeLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        codegen._library_class, state.flags.no_compile = LinkedLibrary, True
        try:
            super().run_pass(state)
        finally:
            del codegen._library_class  # the attribute of the class is visible again
            state.flags.no_compile = False
        call = context.get_executable(state.library, state.cr.fndesc, state.cr.env)
        context.insert_user_function(call, state.cr.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state.cr = state.cr._replace(cfunc=call)
        return True


class RuleCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compile a function that only compiled functions call."""

    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.flags.no_compile = True
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        (passes,) = super().define_pipelines()
        passes.add_pass_after(_Announce, NativeLowering)
        passes.finalize()
        return [passes]


class EntryCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compile a function that Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return list(super().define_pipelines())


class ParallelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compile a function with a parallel loop."""

    def define_pipelines(self) -> list[PassManager]:
        (passes,) = super().define_pipelines()
        passes.passes = [(_ParallelLowering if one is NativeParforLowering else one, why) for one, why in passes.passes]
        passes._finalized = False
        passes.finalize()
        return [passes]
