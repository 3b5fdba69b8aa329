"""Give the model int8 weights by scripts/int8_on_cpu.py once its checkpoint is loaded.

In a checkout of upstream, where `scripts/int8_on_cpu.py` has `quantized`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format int8_on_the_processor.Int8OnTheProcessor scripts/tts_funcs.py
"""

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

IMPORT = m.ImportFrom(m.Name("scripts"), [m.ImportAlias(m.Name("int8_on_cpu"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])
LOADING = m.Call(m.Attribute(m.Attribute(m.Name("self"), m.Name("model")), m.Name("load_checkpoint")))
LOADED = m.SimpleStatementLine([m.Expr(LOADING)])
QUANTIZED = m.Call(m.Attribute(m.Name("int8_on_cpu"), m.Name("quantized")))
STATEMENT = "self.model = int8_on_cpu.quantized(self.model, self.device)"


class Int8OnTheProcessor(VisitorBasedCodemodCommand):
    DESCRIPTION = "Give the model int8 weights behind self.model.load_checkpoint()."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    @m.call_if_inside(m.FunctionDef(m.Name("load_local_model")))
    def leave_IndentedBlock(self, original_node, updated_node):
        """Put the statement behind each one that loads a checkpoint and has none behind it."""
        body = []
        for at, line in enumerate(original_node.body):
            body.append(updated_node.body[at])
            if m.matches(line, LOADED):
                following = original_node.body[at + 1 : at + 2]
                if following and m.findall(following[0], QUANTIZED):
                    self.context.scratch.setdefault("settled", []).append(self._line(line))
                else:
                    self.is_asked = True
                    body.append(cst.parse_statement(STATEMENT))
            elif isinstance(line, cst.SimpleStatementLine) and m.findall(line, LOADING):
                self.warn(f"line {self._line(line)}: the checkpoint is loaded in the middle of a statement")
        return updated_node.with_changes(body=body)

    def leave_Module(self, original_node, updated_node):
        """Import the helper at the top, behind the docstring."""
        body = [*updated_node.body]
        if not self.is_asked or any(m.matches(line, m.SimpleStatementLine([IMPORT])) for line in body):
            return updated_node
        at = next(at for at, line in enumerate(body) if not m.matches(line, BEFORE_IMPORTS))
        new = cst.parse_statement("from scripts import int8_on_cpu").with_changes(leading_lines=body[at].leading_lines)
        return updated_node.with_changes(
            body=[*body[:at], new, body[at].with_changes(leading_lines=[]), *body[at + 1 :]]
        )

    def _line(self, node):
        return self.get_metadata(PositionProvider, node).start.line
