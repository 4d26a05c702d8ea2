"""A script with arguments, some of which look like options of `loopscope run`; it ends with a code of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.cli.programs.common import Scripted, report, search, show

parser = argparse.ArgumentParser()
parser.add_argument("--record")
parser.add_argument("-m", type=int)
parser.add_argument("rest", nargs="*")
options = parser.parse_args()
show([sys.argv, vars(options), __file__, __package__, str(__spec__), sys.path[0], sys.orig_argv[1:], str(Path.cwd())])
model = Scripted(searches=options.m)
graph: Any = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
report(graph.compile())
sys.exit(options.m + 5)
