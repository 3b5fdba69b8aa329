"""Ask scripts/machine.py on which device the model and resemble-enhance compute.

In a checkout of upstream, where `scripts/machine.py` has `device`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format device_of_the_machine.DeviceOfTheMachine scripts
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

IS_AVAILABLE = m.Call(m.Attribute(m.Attribute(m.Name("torch"), m.Name("cuda")), m.Name("is_available")), [])
SELF_CUDA = m.Attribute(m.Name("self"), m.Name("cuda"))
IMPORT = m.ImportFrom(m.Name("scripts"), [m.ImportAlias(m.Name("machine"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


class DeviceOfTheMachine(VisitorBasedCodemodCommand):
    DESCRIPTION = "Ask machine.device() instead of torch.cuda.is_available()."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    @m.call_if_inside(m.FunctionDef(m.Name("__init__") | m.Name(m.MatchRegex(r"resemble_\w+"))))
    def leave_IfExp(self, original_node, updated_node):
        """Make `machine.device(...)` of `... if torch.cuda.is_available() else "cpu"`."""
        if not m.matches(original_node, m.IfExp(test=IS_AVAILABLE, orelse=_text("cpu"))):
            return updated_node
        if m.matches(original_node.body, SELF_CUDA):
            arguments = [cst.Arg(updated_node.body)]
        elif m.matches(original_node.body, _text("cuda")):
            arguments = []
        else:
            line = self.get_metadata(PositionProvider, original_node).start.line
            self.warn(f"line {line}: it is neither CUDA nor what the app was told, `self.cuda`")
            return updated_node
        self.is_asked = True
        call = cst.Call(cst.parse_expression("machine.device"), arguments)
        return call.with_changes(lpar=original_node.lpar, rpar=original_node.rpar)

    def leave_Call(self, original_node, updated_node):
        if m.matches(original_node.func, m.Attribute(m.Name("machine"), m.Name("device"))):
            line = self.get_metadata(PositionProvider, original_node).start.line
            self.context.scratch.setdefault("settled", []).append(line)
        return updated_node

    def leave_Module(self, original_node, updated_node):
        """Import the helper at the top, behind the docstring."""
        body = [*updated_node.body]
        if not self.is_asked or any(m.matches(line, m.SimpleStatementLine([IMPORT])) for line in body):
            return updated_node
        at = next(at for at, line in enumerate(body) if not m.matches(line, BEFORE_IMPORTS))
        new = cst.parse_statement("from scripts import machine").with_changes(leading_lines=body[at].leading_lines)
        return updated_node.with_changes(
            body=[*body[:at], new, body[at].with_changes(leading_lines=[]), *body[at + 1 :]]
        )
