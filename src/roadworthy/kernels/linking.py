"""Rules are turned into machine code once, as part of whoever Python calls, and not on the way there.

Numba optimises every function together with all that it calls, and emits machine code for it, before the next caller
does the same again with all of it. In a chain of rules that is quadratic, and a parallel loop does it four times over.
Here rules, and the parts that a parallel loop is made of, are kept as LLVM's intermediate code: the outermost function
links them, optimises everything and emits it.

This leans on Numba's inner workings (0.68): the hooks are `pipeline_class`, code libraries and the lowering passes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm  # type: ignore[import-untyped]
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NativeParforLowering


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code for others to link: never optimised and never emitted by itself."""

    _shared_module: Any

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Null: nothing can be called."""
        return 0

    @property
    def has_dynamic_globals(self) -> bool:
        return any(library.has_dynamic_globals for library in self._called() if not isinstance(library, LinkedLibrary))

    def _get_module_for_linking(self) -> Any:
        """This code and all that it calls, each once, as definitions that may be merged with equal ones."""
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
        """The libraries of everything that is called from here, however far away."""
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
    """Code that Python calls, with all that it links made its own: unused arguments go, single calls become inline."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()


@register_pass(mutates_CFG=False, analysis_only=False)
class _Announce(LoweringPass):  # type: ignore[misc]
    """Make a rule known to its callers, as Numba does with what it has emitted."""

    _name = "announce_rule"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.cr = state.cr._replace(cfunc=object())  # callers are told apart by it
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _ParallelLowering(NativeParforLowering):  # type: ignore[misc]
    """Lower a parallel loop: what it is made of is linked, and only the whole is emitted."""

    _name = "parallel_lowering"

    def run_pass(self, state: Any) -> bool:
        context, codegen = state.targetctx, state.targetctx.codegen()
        state.library = WholeLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        codegen._library_class, state.flags.no_compile = LinkedLibrary, True
        try:
            super().run_pass(state)
        finally:
            del codegen._library_class  # the class's own is back
            state.flags.no_compile = False
        call = context.get_executable(state.library, state.cr.fndesc, state.cr.env)
        context.insert_user_function(call, state.cr.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state.cr = state.cr._replace(cfunc=call)
        return True


class RuleCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles what only compiled functions call."""

    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.flags.no_compile = True
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        (passes,) = super().define_pipelines()
        passes.add_pass_after(_Announce, NativeLowering)
        passes.finalize()
        return [passes]


class EntryCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles what Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return list(super().define_pipelines())


class ParallelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles functions with a parallel loop."""

    def define_pipelines(self) -> list[PassManager]:
        (passes,) = super().define_pipelines()
        passes.passes = [(_ParallelLowering if one is NativeParforLowering else one, why) for one, why in passes.passes]
        passes._finalized = False
        passes.finalize()
        return [passes]
