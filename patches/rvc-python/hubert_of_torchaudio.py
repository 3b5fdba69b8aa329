"""Load the model that hears by rvc_python/lib/hubert.py instead of fairseq.

In a checkout of upstream, where `rvc_python/lib/hubert.py` has `load`:

    export PYTHONPATH=<this folder>
    python -m libcst.tool codemod -x --no-format hubert_of_torchaudio.HubertOfTorchaudio rvc_python/modules/vc
"""

import libcst as cst
from libcst import matchers as m
from libcst.codemod import VisitorBasedCodemodCommand
from libcst.metadata import PositionProvider

IMPORT = m.ImportFrom(m.Attribute(m.Name("rvc_python"), m.Name("lib")), [m.ImportAlias(m.Name("hubert"))])
BEFORE_IMPORTS = m.SimpleStatementLine([m.Expr(m.SimpleString()) | m.ImportFrom(m.Name("__future__"))])
LOAD = m.Attribute(m.Name("checkpoint_utils"), m.Name("load_model_ensemble_and_task"))
ONE_PATH = m.Arg(m.List([m.Element()]), keyword=None, star="")


class HubertOfTorchaudio(VisitorBasedCodemodCommand):
    DESCRIPTION = "Load HuBERT by hubert.load() instead of fairseq's checkpoint_utils."
    METADATA_DEPENDENCIES = (PositionProvider,)
    is_asked = False

    def leave_Call(self, original_node, updated_node):
        """Make `([hubert.load(path)], None, None)` of fairseq's models, their settings and their task."""
        if m.matches(original_node.func, m.Attribute(m.Name("hubert"), m.Name("load"))):
            self.context.scratch.setdefault("settled", []).append(self._line(original_node))
        if not m.matches(original_node.func, LOAD):
            return updated_node
        if not m.matches(original_node, m.Call(args=[ONE_PATH, m.ZeroOrMore()])):
            self.warn(f"line {self._line(original_node)}: fairseq is not told one path in a list")
            return updated_node
        self.is_asked = True
        path = updated_node.args[0].value.elements[0].value
        load = cst.Call(cst.parse_expression("hubert.load"), [cst.Arg(path)])
        models = cst.List([cst.Element(load)])
        return cst.Tuple([cst.Element(models), cst.Element(cst.Name("None")), cst.Element(cst.Name("None"))])

    def leave_Module(self, original_node, updated_node):
        """Import the helper at the top, behind the docstring."""
        body = [*updated_node.body]
        if not self.is_asked or any(m.matches(line, m.SimpleStatementLine([IMPORT])) for line in body):
            return updated_node
        at = next(at for at, line in enumerate(body) if not m.matches(line, BEFORE_IMPORTS))
        new = cst.parse_statement("from rvc_python.lib import hubert").with_changes(
            leading_lines=body[at].leading_lines
        )
        return updated_node.with_changes(
            body=[*body[:at], new, body[at].with_changes(leading_lines=[]), *body[at + 1 :]]
        )

    def _line(self, node):
        return self.get_metadata(PositionProvider, node).start.line
