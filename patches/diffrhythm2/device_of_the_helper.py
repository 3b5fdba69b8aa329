"""Ask compute_device.py which device computes.

In a checkout of upstream, where `compute_device.py` has `chosen`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format device_of_the_helper.DeviceOfTheHelper inference.py
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

IMPORT = m.Import([m.ImportAlias(m.Name("compute_device"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])
IS_AVAILABLE = m.Call(m.Attribute(m.Attribute(m.Name("torch"), m.Name("cuda")), m.Name("is_available")), [])


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


CHOICE = m.IfExp(test=IS_AVAILABLE, body=_text("cuda"), orelse=_text("cpu"))
DEVICE = m.Call(m.Attribute(m.Name("torch"), m.Name("device")), [m.Arg(CHOICE)])


class DeviceOfTheHelper(VisitorBasedCodemodCommand):
    DESCRIPTION = "Ask compute_device.chosen() instead of torch.cuda.is_available()."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    def visit_Call(self, node):
        """Do not look into what is changed as a whole; a question that stands alone is refused."""
        if m.matches(node, IS_AVAILABLE):
            self.warn(f"line {self._line(node)}: CUDA is asked for otherwise than to choose `torch.device`")
        return not m.matches(node, DEVICE)

    def leave_Call(self, original_node, updated_node):
        """Make `compute_device.chosen()` of `torch.device('cuda' if torch.cuda.is_available() else 'cpu')`."""
        if m.matches(original_node.func, m.Attribute(m.Name("compute_device"), m.Name("chosen"))):
            self.context.scratch.setdefault("settled", []).append(self._line(original_node))
        if not m.matches(original_node, DEVICE):
            return updated_node
        self.is_asked = True
        return cst.parse_expression("compute_device.chosen()")

    def leave_Module(self, original_node, updated_node):
        """Import the helper at the top, behind the docstring."""
        body = [*updated_node.body]
        if not self.is_asked or any(m.matches(line, m.SimpleStatementLine([IMPORT])) for line in body):
            return updated_node
        at = next(at for at, line in enumerate(body) if not m.matches(line, BEFORE_IMPORTS))
        new = cst.parse_statement("import compute_device").with_changes(leading_lines=body[at].leading_lines)
        return updated_node.with_changes(
            body=[*body[:at], new, body[at].with_changes(leading_lines=[]), *body[at + 1 :]]
        )

    def _line(self, node):
        return self.get_metadata(PositionProvider, node).start.line
