"""Keep the model that listens to a style, and what it listens to, on the processor; for DirectML.

In a checkout of upstream:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format style_on_the_processor.StyleOnTheProcessor inference.py
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

ON_DEVICE = [m.Arg(m.Name("device"))]
PRETRAINED = m.Call(m.Attribute(m.Name("MuQMuLan"), m.Name("from_pretrained")))
RECORDING = m.Call(m.Attribute(m.Name("prompt_wav"), m.Name("to")), ON_DEVICE)


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


class StyleOnTheProcessor(VisitorBasedCodemodCommand):
    DESCRIPTION = "Keep MuQ-MuLan and the recording of a style on the processor."
    METADATA_DEPENDENCIES = (PositionProvider,)

    def leave_Call(self, original_node, updated_node):
        """Bring the model to "cpu", and the recording nowhere."""
        if m.matches(original_node, RECORDING):
            return updated_node.func.value
        if not m.matches(original_node.func, m.Attribute(PRETRAINED, m.Name("to"))):
            return updated_node
        line = self.get_metadata(PositionProvider, original_node).start.line
        if m.matches(original_node, m.Call(args=[m.Arg(_text("cpu"))])):
            self.context.scratch.setdefault("settled", []).append(line)
            return updated_node
        if not m.matches(original_node, m.Call(args=ON_DEVICE)):
            self.warn(f"line {line}: the model is brought to something else than `device`")
            return updated_node
        return updated_node.with_changes(args=[cst.Arg(cst.SimpleString('"cpu"'))])
