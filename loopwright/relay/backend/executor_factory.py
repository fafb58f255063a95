"""What `relay.build` returns, by the names that scripts know it under: one class, whatever the executor is called."""

from __future__ import annotations

from loopwright.relay.built import BuiltModule

ExecutorFactoryModule = GraphExecutorFactoryModule = AOTExecutorFactoryModule = BuiltModule

__all__ = ["AOTExecutorFactoryModule", "ExecutorFactoryModule", "GraphExecutorFactoryModule"]
