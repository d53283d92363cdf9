#include "hone/builder.h"

#include "build/builder.h"

#include <set>

#include "backends/backend.h"
#include "hone/error.h"
#include "hone/version.h"
#include "onnx/writer.h"
#include "ops/op.h"
#include "ops/schema.h"
#include "optimize/pass.h"

namespace hone {

Engine build(const std::string& model_path, const BuildOptions& options, BuildReport* report) {
  return Engine(builder::build_engine(model_path, options, report));
}

Engine retune(const Engine& engine, const BuildOptions& options, BuildReport* report) {
  return Engine(builder::retune_engine(*engine.impl(), options, report));
}

void simplify(const std::string& model_path, const std::string& out_path, const BuildOptions& options,
              int opset, BuildReport* report) {
  const ir::Model model = builder::optimise(model_path, options, report, nullptr);
  onnx::WriteOptions write;
  write.opset = opset;
  onnx::write_model(*model.graph, out_path, write);
}

std::vector<PassInfo> list_passes() {
  std::vector<PassInfo> out;
  for (const optimize::Pass& p : optimize::all_passes())
    out.push_back({p.name, p.what, ops::numerics_name(p.numerics), 0, 0});
  return out;
}

std::vector<OpInfo> list_ops() {
  std::vector<OpInfo> out;
  for (const ops::OpDef* op : ops::all_ops()) {
    OpInfo info;
    info.domain = op->domain;
    info.name = op->name;
    info.reference = op->kernel != nullptr;
    if (const ops::SchemaVersion* schema = ops::find_schema(op->domain, op->name, kIrOpset))
      info.since = schema->since;
    ops::Problem probe;
    probe.domain = op->domain;
    probe.op = op->name;
    for (const backends::Backend* b : backends::all_backends())
      if (b->name() != "ref" &&
          b->tactics(probe, {.backend = std::string(b->name()), .isa = Isa::kAvx512}).size() > 1)
        info.backends.emplace_back(b->name());
    out.push_back(std::move(info));
  }
  return out;
}

void model_interface(const std::string& model_path, std::vector<TensorInfo>* inputs,
                     std::vector<TensorInfo>* outputs) {
  const ir::Model model = builder::import_for_build(model_path, {}, nullptr);
  const auto list = [&](const std::vector<ir::ValueId>& ids, std::vector<TensorInfo>* out) {
    if (out == nullptr) return;
    for (ir::ValueId id : ids) {
      const ir::Value& v = model.graph->value(id);
      TensorInfo info;
      info.name = v.name;
      info.dtype = v.is_const() ? v.data->dtype() : v.type.dtype;
      info.ranked = v.type.shape.has_value() || v.is_const();
      if (v.type.shape)
        for (const ir::Dim& d : *v.type.shape) info.dims.push_back(d.text());
      out->push_back(std::move(info));
    }
  };
  list(model.graph->inputs(), inputs);
  list(model.graph->outputs(), outputs);
}

}  // namespace hone
