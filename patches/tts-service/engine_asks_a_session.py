"""Ask ONNX Runtime's sessions where they compute, as what was compiled in says nothing about the machine.

In a checkout of upstream:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format engine_asks_a_session.EngineAsksASession apps/tts-service/src
"""

import ast

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

USE_CUDA = m.Attribute(m.Name("self"), m.Name("use_cuda"))
PROVIDERS = '["CUDAExecutionProvider", "CPUExecutionProvider"]'
ASKED = f"InferenceSession(str(self.model_path), providers={PROVIDERS}).get_providers()"
OF_THE_VOICE = '"CUDAExecutionProvider" in self.model.session.get_providers()'


def _text(value):
    return m.SimpleString(value=m.MatchIfTrue(lambda code: ast.literal_eval(code) == value))


SAYS = m.IfExp(body=_text("GPU"), orelse=_text("CPU"))
IN_INITIALIZE = m.FunctionDef(m.Name("initialize"))


class EngineAsksASession(VisitorBasedCodemodCommand):
    DESCRIPTION = "Ask an InferenceSession where it computes instead of what ONNX Runtime was compiled with."
    METADATA_DEPENDENCIES = (PositionProvider,)

    @m.call_if_inside(IN_INITIALIZE)
    def leave_Call(self, original_node, updated_node):
        """Make a session of the voice, and ask it."""
        match original_node.func:
            case cst.Attribute(value=runtime, attr=cst.Name("get_available_providers")) if not original_node.args:
                asked = cst.parse_expression(f"_.{ASKED}")
                return asked.with_deep_changes(asked.func.value.func, value=runtime)
            case cst.Attribute(value=cst.Call(func=cst.Attribute(attr=cst.Name("InferenceSession")))):
                self._settled(original_node)
        return updated_node

    @m.call_if_inside(IN_INITIALIZE)
    def leave_IfExp(self, original_node, updated_node):
        """Say "GPU" where the session of the voice has CUDA, not where it was asked to have it."""
        if not m.matches(original_node, SAYS):
            return updated_node
        if m.matches(original_node.test, USE_CUDA):
            return updated_node.with_changes(test=cst.parse_expression(OF_THE_VOICE))
        if m.findall(original_node.test, m.Name("get_providers")):
            self._settled(original_node)
        else:
            line = self.get_metadata(PositionProvider, original_node).start.line
            self.warn(f"line {line}: what it says depends on something else than `self.use_cuda`")
        return updated_node

    def _settled(self, node):
        line = self.get_metadata(PositionProvider, node).start.line
        self.context.scratch.setdefault("settled", []).append(line)
