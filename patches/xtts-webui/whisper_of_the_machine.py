"""Load Whisper for training on the device and with the numbers that scripts/machine.py gives.

In a checkout of upstream, where `scripts/machine.py` has `whisper`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format whisper_of_the_machine.WhisperOfTheMachine scripts/utils
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

MACHINE = m.Arg(m.Call(m.Attribute(m.Name("machine"), m.Name("whisper")), []), star="**")


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


FLOAT16 = m.Arg(_text("float16"), m.Name("compute_type"))
OF_UPSTREAM = m.Call(m.Name("WhisperModel"), [m.Arg(keyword=None), m.Arg(keyword=m.Name("device")), FLOAT16])


class WhisperOfTheMachine(VisitorBasedCodemodCommand):
    DESCRIPTION = "Load WhisperModel with **machine.whisper() instead of float16 on any card."
    METADATA_DEPENDENCIES = (PositionProvider,)

    def leave_SimpleStatementLine(self, original_node, updated_node):
        """Change the call in a statement, and import the helper above it: the script is imported before the app is."""
        loading = m.findall(original_node, m.Call(m.Name("WhisperModel")))
        settled = [call for call in loading if m.matches(call, m.Call(args=[m.Arg(), MACHINE]))]
        self.context.scratch.setdefault("settled", []).extend(map(self._line, settled))
        for call in loading:
            if m.findall(call, _text("float16")) and not m.matches(call, OF_UPSTREAM):
                self.warn(f"line {self._line(call)}: float16 is told beside other things than a model and a device")
        if not m.findall(original_node, OF_UPSTREAM):
            return updated_node
        changed = m.replace(updated_node, OF_UPSTREAM, _asked)
        above = cst.parse_statement("from scripts import machine").with_changes(leading_lines=changed.leading_lines)
        return cst.FlattenSentinel([above, changed.with_changes(leading_lines=[])])

    def _line(self, node):
        return self.get_metadata(PositionProvider, node).start.line


def _asked(call, _):
    machine = cst.Arg(cst.parse_expression("machine.whisper()"), star="**")
    return call.with_changes(args=[call.args[0], machine])
