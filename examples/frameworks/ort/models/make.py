"""Writes the models next to this file, with PyPI's `onnx` 1.22: each has one node, and eight numbers in and out."""

from pathlib import Path

from onnx import TensorProto, checker, helper

for name, operator in [("embed", "Tanh"), ("rank", "Softmax")]:
    numbers = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ["input", "output"]]
    node = helper.make_node(operator, ["input"], ["output"])
    graph = helper.make_graph([node], name, numbers[:1], numbers[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model)
    Path(__file__).with_name(f"{name}.onnx").write_bytes(model.SerializeToString())
