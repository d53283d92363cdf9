#include "runtime/materialize.h"

#include "backends/backend.h"
#include "hone/error.h"
#include "ir/text.h"

namespace hone::runtime {

std::unique_ptr<ir::Graph> materialize_graph(const engine::Engine& engine) {
  const backends::Target target = backends::Target::parse(engine.target);
  const backends::Backend* backend = backends::find_backend(target.backend);
  ir::ParseOptions options;
  options.external = [&](int number, DType dtype, const Shape& shape) {
    if (number < 0 || static_cast<size_t>(number) >= engine.constants.size())
      throw Error(
          ErrorCode::kCorruptEngine,
          "the stored graph names constant " + std::to_string(number) + ", which the engine does not have",
          {.stage = "load"});
    const engine::Constant& c = engine.constants[static_cast<size_t>(number)];
    if (c.dtype != dtype || c.dims != shape)
      throw Error(ErrorCode::kCorruptEngine, "the stored graph and constant '" + c.name + "' differ in type",
                  {.stage = "load"});
    if (c.packing.empty()) return c.bytes;
    if (backend == nullptr)
      throw Error(ErrorCode::kUnsupported, "unpacking needs the backend of target '" + engine.target + "'",
                  {.stage = "load"});
    return backend->unpack(c.packing, c.bytes, c.dtype, c.dims);
  };
  return ir::parse(engine.graph_text, options);
}

}  // namespace hone::runtime
