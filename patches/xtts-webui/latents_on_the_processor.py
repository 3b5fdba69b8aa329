"""Compute a voice's latents on the processor, by scripts/latents_on_cpu.py.

In a checkout of upstream, where `scripts/latents_on_cpu.py` has `conditioning_latents`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format latents_on_the_processor.LatentsOnTheProcessor scripts/tts_funcs.py
"""

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

IMPORT = m.ImportFrom(m.Name("scripts"), [m.ImportAlias(m.Name("latents_on_cpu"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])
ASKED = m.Call(m.Attribute(m.Attribute(m.Name("self"), m.Name("model")), m.Name("get_conditioning_latents")))
SETTLED = m.Call(m.Attribute(m.Name("latents_on_cpu"), m.Name("conditioning_latents")))


class LatentsOnTheProcessor(VisitorBasedCodemodCommand):
    DESCRIPTION = "Ask latents_on_cpu.conditioning_latents() for the latents of a voice."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    def leave_Call(self, original_node, updated_node):
        """Hand the model to the helper, before what it was asked with."""
        if m.matches(original_node, SETTLED):
            line = self.get_metadata(PositionProvider, original_node).start.line
            self.context.scratch.setdefault("settled", []).append(line)
        if not m.matches(original_node, ASKED):
            return updated_node
        self.is_asked = True
        helper = cst.parse_expression("latents_on_cpu.conditioning_latents")
        arguments = [cst.Arg(updated_node.func.value), *updated_node.args]
        return cst.Call(helper, arguments, lpar=updated_node.lpar, rpar=updated_node.rpar)

    def leave_Module(self, original_node, updated_node):
        """Import the helper at the top, behind the docstring."""
        body = [*updated_node.body]
        if not self.is_asked or any(m.matches(line, m.SimpleStatementLine([IMPORT])) for line in body):
            return updated_node
        at = next(at for at, line in enumerate(body) if not m.matches(line, BEFORE_IMPORTS))
        new = cst.parse_statement("from scripts import latents_on_cpu").with_changes(
            leading_lines=body[at].leading_lines
        )
        return updated_node.with_changes(
            body=[*body[:at], new, body[at].with_changes(leading_lines=[]), *body[at + 1 :]]
        )
