"""Start RVC as the app that it is, and find OpenVoice's Python on every system; by scripts/machine.py.

In a checkout of upstream, where `scripts/machine.py` has `rvc` and `side_python`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format rvc_as_an_app.RvcAsAnApp scripts/voice2voice.py
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

PYTHON = "venv/rvc_venv/scripts/python"
IMPORT = m.ImportFrom(m.Name("scripts"), [m.ImportAlias(m.Name("machine"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


OF_RVC = [m.Element(_text(PYTHON)), m.Element(_text("-m")), m.Element(_text("rvc_python"))]
RVC = m.List([*OF_RVC, m.ZeroOrMore()])


class RvcAsAnApp(VisitorBasedCodemodCommand):
    DESCRIPTION = "Start RVC by machine.rvc(), and OpenVoice with machine.side_python()."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    def visit_List(self, node):
        """Do not look for the path in what is changed as a whole."""
        return not m.matches(node, RVC)

    def leave_List(self, original_node, updated_node):
        """Make `machine.rvc(...)` of `["venv/rvc_venv/scripts/python", "-m", "rvc_python", ...]`."""
        if not m.matches(original_node, RVC):
            return updated_node
        options = updated_node.elements[3:]
        if not all(isinstance(option, cst.Element) for option in options):
            line = self.get_metadata(PositionProvider, original_node).start.line
            self.warn(f"line {line}: what RVC is told stands in a list that is spread out here")
            return updated_node
        return self._asked("rvc").with_changes(args=[cst.Arg(option.value, comma=option.comma) for option in options])

    def leave_SimpleString(self, original_node, updated_node):
        """Make `machine.side_python()` of the path that Windows has."""
        return self._asked("side_python") if m.matches(original_node, _text(PYTHON)) else updated_node

    def leave_Call(self, original_node, updated_node):
        if m.matches(original_node.func, m.Attribute(m.Name("machine"), m.Name("rvc") | m.Name("side_python"))):
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

    def _asked(self, function):
        self.is_asked = True
        return cst.Call(cst.Attribute(cst.Name("machine"), cst.Name(function)))
