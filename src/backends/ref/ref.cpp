#include "backends/ref/ref.h"

#include <cstring>

#include "backends/backend.h"
#include "base/thread_pool.h"
#include "hone/error.h"
#include "ops/op.h"

namespace hone::backends {
namespace {

class RefPrepared final : public Prepared {
 public:
  explicit RefPrepared(const Problem& problem) : problem_(problem) {}

  void run(const RunArgs& args) const override {
    std::vector<Tensor> views(problem_.srcs.size());
    std::vector<const Tensor*> srcs(problem_.srcs.size(), nullptr);
    for (size_t i = 0; i < views.size(); ++i) {
      const Operand& o = problem_.srcs[i];
      if (!o.present()) continue;
      views[i] = Tensor::view(o.dtype, o.dims, args.srcs[i]);
      srcs[i] = &views[i];
    }
    const std::vector<Tensor> outs = ops::run_problem(problem_, srcs);
    for (size_t i = 0; i < problem_.dsts.size(); ++i) {
      if (!problem_.dsts[i].present() || args.dsts[i] == nullptr) continue;
      if (outs[i].shape() != problem_.dsts[i].dims || outs[i].dtype() != problem_.dsts[i].dtype)
        throw Error(ErrorCode::kInternal, "reference kernel of " + problem_.op + " produced " +
                                              outs[i].type_text() + " where the plan has " +
                                              hone::type_text(problem_.dsts[i].dtype, problem_.dsts[i].dims));
      if (outs[i].nbytes() > 0)
        std::memcpy(args.dsts[i], outs[i].raw(), static_cast<size_t>(outs[i].nbytes()));
    }
  }

 private:
  Problem problem_;
};

class RefTactic final : public Tactic {
 public:
  const std::string& name() const override { return name_; }
  Isa isa() const override { return Isa::kPortable; }
  Numerics numerics() const override { return Numerics::kExact; }
  Support supports(const Problem& p) const override {
    for (const auto& list : {p.srcs, p.dsts})
      for (const Operand& o : list)
        if (o.layout != Layout::kPlain)
          return Support::no("layout: the reference kernel takes plain layouts only");
    if (p.op == "Pointwise" && p.domain == ir::kHoneDomain) return Support::yes();
    const ops::OpDef* op = ops::find_op(p.domain, p.op);
    if (op == nullptr || op->kernel == nullptr)
      return Support::no("operator: no reference kernel for " + p.domain + "::" + p.op);
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<RefPrepared>(p);
  }

 private:
  std::string name_ = "ref";
};

class RefBackend final : public Backend {
 public:
  std::string_view name() const override { return "ref"; }
  std::vector<const Tactic*> tactics(const Problem&, const Target&) const override { return {&ref_tactic()}; }
  const Tactic* find(std::string_view tactic_name) const override {
    return tactic_name == "ref" ? &ref_tactic() : nullptr;
  }
  Tensor pack(const std::string& packing, const Tensor&) const override {
    throw Error(ErrorCode::kInternal, "the reference backend knows no packing '" + packing + "'");
  }
  Tensor unpack(const std::string& packing, const Tensor&, DType, const Shape&) const override {
    throw Error(ErrorCode::kInternal, "the reference backend knows no packing '" + packing + "'");
  }
  std::string refuse(const Target&) const override { return ""; }
};

}  // namespace

const Tactic& ref_tactic() {
  static const RefTactic tactic;
  return tactic;
}

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

}  // namespace hone::backends
